package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"

	"github.com/ringback/ringback/dispatcher/tenancy"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// Store is an open store of an installation.
type Store struct {
	store.Store

	Name string
	URL  string // without a password
}

// Options are those of an export and of an import.
type Options struct {
	// Stores are the stores of the installation, the main store first.
	Stores []Store
	// Version is that of Ringback.
	Version string
	Logger  *slog.Logger
	// Progress is called after each section with the number of jobs so far, and that of all; 0: unknown. Nil: it is
	// not.
	Progress func(done, total int64)
	// Jobs is the number of jobs in the file of an import, for Progress; 0: unknown.
	Jobs int64
	// WithoutSecrets leaves secrets and tokens out of an export.
	WithoutSecrets bool
}

func (o *Options) progress(done, total int64) {
	if o.Progress != nil {
		o.Progress(done, total)
	}
}

// storeOf returns a store by its name; nil: there is none.
func (o *Options) storeOf(name string) *Store {
	if i := slices.IndexFunc(o.Stores, func(s Store) bool { return s.Name == name }); i >= 0 {
		return &o.Stores[i]
	}
	return nil
}

// namespaces returns the names of the namespaces of each store, in order, by the documents of the main store.
func (o *Options) namespaces(ctx context.Context) (map[string][]string, error) {
	of := map[string][]string{o.Stores[0].Name: {job.DefaultNamespace}}
	err := eachDocument(ctx, o.Stores[0], tenancy.KindNamespace, func(doc store.Document) error {
		if doc.Key.Name == job.DefaultNamespace {
			return nil
		}
		name, err := storeNamed(doc.Value)
		if err != nil {
			return fmt.Errorf("namespace %s: %w", doc.Key.Name, err)
		}
		if o.storeOf(name) == nil {
			return &store.NotConfiguredError{Namespace: doc.Key.Name, Store: name}
		}
		of[name] = append(of[name], doc.Key.Name)
		return nil
	})
	for _, names := range of {
		slices.Sort(names)
	}
	return of, err
}

// storeNamed returns the store of a namespace by its document.
func storeNamed(value []byte) (string, error) {
	n := job.Namespace{Store: job.MainStore}
	if err := json.Unmarshal(value, &n); err != nil {
		return "", fmt.Errorf("%w: %w", store.ErrUnreadable, err)
	}
	return n.Store, nil
}

// documentPage is the number of documents that are read at once.
const documentPage = 500

// eachDocument calls do for the documents of a kind.
func eachDocument(ctx context.Context, s store.Settings, kind string, do func(store.Document) error) error {
	after := store.DocumentKey{Kind: kind}
	for {
		docs, _, err := s.ListDocuments(ctx, after, documentPage)
		if err != nil {
			return fmt.Errorf("list documents: %w", err)
		}
		for _, doc := range docs {
			if err := do(doc); err != nil {
				return err
			}
			after = doc.Key
		}
		if len(docs) < documentPage {
			return nil
		}
	}
}

// count counts the jobs of all stores by reading their lists. Pending are those that have not ended, also if they are
// counted as cancelled.
func (o *Options) count(ctx context.Context) (ledger Ledger, pending int64, err error) {
	ledger = make(Ledger)
	of, err := o.namespaces(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, s := range o.Stores {
		for _, namespace := range of[s.Name] {
			for _, shard := range s.Shards() {
				err := eachPage(ctx, shard, store.Filter{Namespace: namespace}, func(page *store.Page) error {
					for i := range page.Jobs {
						if !page.Jobs[i].State.Ended() {
							pending++
						}
						ledger[rowOfJob(&page.Jobs[i])]++
					}
					return nil
				})
				if err != nil {
					return nil, 0, err
				}
			}
		}
	}
	return ledger, pending, nil
}

// listPage is the number of jobs that are listed at once. It is a variable for tests, as sectionLines.
var listPage = store.MaxListLimit

// eachPage calls do for the pages of a list of a shard. It waits for a store that is unavailable.
func eachPage(ctx context.Context, shard store.Shard, f store.Filter, do func(*store.Page) error) error {
	f.Limit, f.Oldest = listPage, true
	for {
		var page store.Page
		if err := retry(ctx, func() (err error) {
			page, err = shard.List(ctx, f)
			return err
		}); err != nil {
			return fmt.Errorf("list jobs: %w", err)
		}
		if err := do(&page); err != nil {
			return err
		}
		if !page.More {
			return nil
		}
		f.After = page.Reached
	}
}

// A snapshot is what stores count, by which an export notices that they are in use. Bytes and due times are left out.
type snapshot struct {
	Registered int64 `json:"registered"`
	Pending    int64 `json:"pending"`
	Delivered  int64 `json:"delivered"`
	Dead       int64 `json:"dead"`
	Cancelled  int64 `json:"cancelled"`
	// Settings is a hash of the revisions of settings, but those of the last uses of tokens.
	Settings uint64 `json:"settings"`
}

// snapshot adds up the counters of all topics.
func (o *Options) snapshot(ctx context.Context) (sum snapshot, err error) {
	of, err := o.namespaces(ctx)
	if err != nil {
		return sum, err
	}
	for _, s := range o.Stores {
		r := router.New(s)
		for _, namespace := range of[s.Name] {
			total, err := r.Totals(ctx, namespace)
			if err != nil {
				return sum, fmt.Errorf("read counters: %w", err)
			}
			internal, err := r.TopicStats(ctx,
				store.StatsFilter{Namespace: namespace, Topics: []string{job.WorkTopic, job.ScheduleTopic}})
			if err != nil {
				return sum, fmt.Errorf("read counters: %w", err)
			}
			for _, t := range append(internal, total) {
				sum.Registered += t.Registered
				sum.Pending += t.Scheduled + t.Ready + t.Running
				sum.Delivered += t.Delivered
				sum.Dead += t.Dead
				sum.Cancelled += t.Cancelled
			}
		}
	}
	sum.Settings, err = o.hashSettings(ctx)
	return sum, err
}

// hashSettings returns a hash of the revisions of all settings.
func (o *Options) hashSettings(ctx context.Context) (sum uint64, err error) {
	hashed := make(map[uint64]bool) // the settings of a lane may be read twice
	add := func(parts ...any) {
		h := fnv.New64a()
		_, _ = fmt.Fprintln(h, parts...)
		if n := h.Sum64(); !hashed[n] {
			hashed[n] = true
			sum += n
		}
	}
	for i, s := range o.Stores {
		kinds := storeKinds
		if i == 0 {
			kinds = append([]string{tenancy.KindNamespace, tenancy.KindToken}, storeKinds...)
		}
		for _, kind := range kinds {
			_, revision, err := s.ListDocuments(ctx, store.DocumentKey{Kind: kind}, 1)
			if err != nil {
				return 0, fmt.Errorf("read the revision of documents: %w", err)
			}
			add(s.Name, kind, revision)
		}
		for _, shard := range s.Shards() {
			err := eachLane(ctx, shard, func(doc store.Document) error {
				add(s.Name, describe(doc.Key), doc.Revision)
				return nil
			})
			if err != nil {
				return 0, err
			}
		}
	}
	return sum, nil
}
