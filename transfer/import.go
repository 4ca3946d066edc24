package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Imported is the result of an import.
type Imported struct {
	// File is the ledger of the file, Stored that of the stores behind the import.
	File, Stored Ledger
	// Created and Existing are the jobs that this call has stored, and those that it has found to be stored.
	Created, Existing int64
	// Skipped are the jobs of sections that were stored before this call.
	Skipped int64
	// DoneAt is when the file was imported as a whole, before this call; zero: it was not.
	DoneAt time.Time
}

// A ConflictError is the error of something that is stored otherwise.
type ConflictError struct {
	Line int
	What string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("line %d: the store has another %s: import into an empty store, or remove it there", e.Line, e.What)
}

// A MissingError is the error of an import after which the stores have fewer jobs than the file.
type MissingError struct{ Jobs int64 }

func (e *MissingError) Error() string {
	return fmt.Sprintf("%d jobs of the file are not in the stores: see the ledger", e.Jobs)
}

// Check reads a file as a whole: whether it is complete and undamaged, and whether an import of it would meet something that is
// stored otherwise. It changes nothing, and returns the ledger of the file.
func Check(ctx context.Context, file io.Reader, o Options) (Ledger, error) {
	i := &importer{Options: o, dry: true}
	err := i.run(ctx, newReader(file))
	return i.result.File, err
}

// Import stores the content of a file in stores that are not in use. Repeated with the same file it goes on where it was, and stores nothing twice.
func Import(ctx context.Context, file io.Reader, o Options) (Imported, error) {
	ctx, unlock, err := o.lock(ctx)
	if err != nil {
		return Imported{}, err
	}
	defer unlock()
	i := &importer{Options: o}
	err = i.run(ctx, newReader(file))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return i.result, err
}

type importer struct {
	Options

	// dry only checks.
	dry    bool
	mu     sync.Mutex // guards the counts of result
	result Imported
	// storeOfNamespace has the namespaces that are stored, and, of a dry run, those of the file.
	storeOfNamespace map[string]*Store
	state            importState
	revision         int64 // of the document of state
}

// kindImport is the kind of the documents of imports, which the main store has under the ids of exports.
const kindImport = "import"

// importState is how far an import has come: the value of its document.
type importState struct {
	Sections  int       `json:"sections"` // that are stored
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

func (i *importer) run(ctx context.Context, r *reader) error {
	if err := i.readNamespaces(ctx); err != nil {
		return err
	}
	done := int64(0)
	for {
		p, err := r.read()
		if errors.Is(err, io.EOF) {
			return i.end(ctx, r)
		}
		if err != nil {
			return err
		}
		if r.sections == 1 {
			if err := i.begin(ctx, r.header.ID); err != nil {
				return err
			}
		}
		if done += int64(len(p.jobs)); r.sections <= i.state.Sections {
			i.result.Skipped += int64(len(p.jobs))
		} else if err := i.store(ctx, p); err != nil {
			return err
		} else if err := i.save(ctx, r.header.ID, importState{Sections: r.sections, StartedAt: i.state.StartedAt}); err != nil {
			return err
		}
		i.progress(done, i.Jobs)
	}
}

// readNamespaces finds the stores of the namespaces that are stored.
func (i *importer) readNamespaces(ctx context.Context) error {
	of, err := i.namespaces(ctx)
	if err != nil {
		return err
	}
	i.storeOfNamespace = make(map[string]*Store)
	for name, namespaces := range of {
		for _, namespace := range namespaces {
			i.storeOfNamespace[namespace] = i.storeOf(name)
		}
	}
	return nil
}

func importKey(id string) store.DocumentKey {
	return store.DocumentKey{Kind: kindImport, Namespace: job.DefaultNamespace, Name: id}
}

// begin reads how far an earlier import of the file has come.
func (i *importer) begin(ctx context.Context, id string) error {
	docs, err := i.Stores[0].GetDocuments(ctx, []store.DocumentKey{importKey(id)})
	if err != nil {
		return fmt.Errorf("read the progress: %w", err)
	}
	i.state = importState{StartedAt: job.Millis(time.Now())}
	if i.revision = docs[0].Revision; i.revision == 0 {
		return nil
	}
	if err := json.Unmarshal(docs[0].Value, &i.state); err != nil {
		return fmt.Errorf("read the progress: %w", err)
	}
	i.result.DoneAt = i.state.EndedAt
	return nil
}

// save notes how far the import has come.
func (i *importer) save(ctx context.Context, id string, state importState) error {
	if i.dry {
		return nil
	}
	value, err := json.Marshal(state)
	if err != nil {
		return err
	}
	token, doc := store.NewToken(), store.Document{Key: importKey(id), Value: value, Revision: cmp.Or(i.revision, store.MustNotExist)}
	return retry(ctx, func() error {
		written, err := i.Stores[0].PutDocument(ctx, token, doc, policy.Limits{})
		if err == nil {
			i.state, i.revision = state, written.Revision
		}
		return err
	})
}

// store stores a section: first its documents.
func (i *importer) store(ctx context.Context, p *part) error {
	if err := i.storeDocuments(ctx, p.documents); err != nil {
		return err
	}
	byStore := make(map[*Store][][]numbered[store.Record]) // and by shard
	for _, n := range p.jobs {
		s := i.storeOfNamespace[n.value.Namespace]
		if s == nil {
			return faultf(n.line, "the namespace %s is not known: its line is missing", n.value.Namespace)
		}
		if byStore[s] == nil {
			byStore[s] = make([][]numbered[store.Record], len(s.Shards()))
		}
		shard := store.ShardOf(len(s.Shards()), n.value.Queue)
		byStore[s][shard] = append(byStore[s][shard], n)
	}
	for s, records := range byStore {
		err := onShards(s, func(n int, shard store.Shard) error { return checkElsewhere(ctx, shard, n, records) })
		if err != nil {
			return err
		}
		err = onShards(s, func(n int, shard store.Shard) error {
			if len(records[n]) == 0 {
				return nil
			}
			return i.storeRecords(ctx, shard, records[n])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// onShards calls do for all shards at once. Of several errors it returns the conflict of the first line.
func onShards(s *Store, do func(n int, shard store.Shard) error) error {
	errs := make([]error, len(s.Shards()))
	var calls sync.WaitGroup
	for n, shard := range s.Shards() {
		calls.Go(func() { errs[n] = do(n, shard) })
	}
	calls.Wait()
	slices.SortStableFunc(errs, func(a, b error) int { return cmp.Compare(lineOfError(a), lineOfError(b)) })
	return cmp.Or(errs...)
}

// lineOfError returns the line of a conflict; 0: it is another error.
func lineOfError(err error) int {
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		return conflict.Line
	}
	return 0
}

// storeRecords stores jobs of a shard. With a ConflictError the others are stored.
func (i *importer) storeRecords(ctx context.Context, shard store.Shard, records []numbered[store.Record]) (err error) {
	if i.dry {
		return checkRecords(ctx, shard, records)
	}
	put := make([]store.Record, len(records))
	for k := range records {
		put[k] = records[k].value
	}
	var outcomes []store.Outcome
	token := store.NewToken()
	if err := retry(ctx, func() (err error) {
		outcomes, err = shard.PutRecords(ctx, token, put)
		return err
	}); err != nil {
		return fmt.Errorf("store jobs: %w", err)
	}
	created, existing := int64(0), int64(0)
	for k, outcome := range outcomes {
		switch outcome {
		case store.Created:
			created++
		case store.Existing:
			existing++
		default:
			err = cmp.Or(err, conflictOf(&records[k]))
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.result.Created += created
	i.result.Existing += existing
	return err
}

func conflictOf(n *numbered[store.Record]) error {
	return &ConflictError{Line: n.line, What: "job " + n.value.Namespace + "/" + n.value.ID}
}

// checkElsewhere returns a ConflictError if the shard n knows the id of a job of another shard.
func checkElsewhere(ctx context.Context, shard store.Shard, n int, records [][]numbered[store.Record]) error {
	others := slices.Concat(slices.Concat(records[:n]...), slices.Concat(records[n+1:]...))
	if len(others) == 0 {
		return nil
	}
	known, err := shard.Known(ctx, refsOf(others))
	if err != nil {
		return fmt.Errorf("look for jobs: %w", err)
	}
	for k, status := range known {
		if status.Known() {
			return conflictOf(&others[k])
		}
	}
	return nil
}

func refsOf(records []numbered[store.Record]) []job.Ref {
	refs := make([]job.Ref, len(records))
	for k := range records {
		refs[k] = records[k].value.Ref()
	}
	return refs
}

// checkRecords returns a ConflictError for a job whose id has a job of another registration on its shard.
func checkRecords(ctx context.Context, shard store.Shard, records []numbered[store.Record]) error {
	known, err := shard.Known(ctx, refsOf(records))
	if err != nil {
		return fmt.Errorf("look for jobs: %w", err)
	}
	var stored []numbered[store.Record]
	for k, status := range known {
		if status.Exists {
			stored = append(stored, records[k])
		}
	}
	return eachRecord(ctx, shard, refsOf(stored), func(k int, r *store.Record) error {
		if !stored[k].value.IsSameRegistration(r.Queue, r.CreatedAt, r.Fingerprint) {
			return conflictOf(&stored[k])
		}
		return nil
	})
}

// end compares the ledgers.
func (i *importer) end(ctx context.Context, r *reader) error {
	i.result.File = r.ledger
	if i.dry {
		return nil
	}
	var err error
	if i.result.Stored, _, err = i.count(ctx); err != nil {
		return err
	}
	if !i.result.DoneAt.IsZero() {
		return nil // jobs may have ended and been removed since
	}
	missing := int64(0)
	for row, n := range i.result.File {
		missing += max(0, n-i.result.Stored[row])
	}
	if missing > 0 {
		return &MissingError{Jobs: missing}
	}
	return i.save(ctx, r.header.ID, importState{Sections: r.sections, StartedAt: i.state.StartedAt, EndedAt: job.Millis(time.Now())})
}

// retryFor is how long a call is repeated while a store is unavailable.
const retryFor = 30 * time.Second

// retry makes a call, and repeats it while the store is unavailable.
func retry(ctx context.Context, call func() error) error {
	var pause store.Backoff
	for until := time.Now().Add(retryFor); ; {
		err := call()
		if !errors.Is(err, store.ErrUnavailable) || time.Now().After(until) || !pause.Wait(ctx) {
			return err
		}
	}
}
