package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Imported is the result of an import.
type Imported struct {
	// File is the ledger of the file, Stored that of the stores behind the import.
	File, Stored Ledger
	// Created and Existing are the jobs that this call has stored, and those that it has found to be stored.
	Created, Existing int64
	// DoneAt is when the file was imported as a whole, before this call; zero: it was not. Accepted: the import was
	// ended by AcceptImports then.
	DoneAt   time.Time
	Accepted bool
}

// Check reads a file as a whole: whether it is complete and undamaged, and whether an import of it would meet something
// that is stored otherwise. It changes nothing, and returns the ledger of the file.
func Check(ctx context.Context, file io.Reader, o Options) (Ledger, error) {
	i := &importer{Options: o, dry: true}
	err := i.run(ctx, newReader(file))
	return i.result.File, err
}

// Import stores the content of a file in stores that are not in use. Repeated with the same file it begins anew, and
// stores nothing twice.
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
	mu     sync.Mutex // guards the counts of result, leftOut and stale
	result Imported
	// storeOfNamespace has the namespaces that are stored, and, of a dry run, those of the file.
	storeOfNamespace map[string]*Store
	// state is that of the document of the import, which has the name id; revision 0: it has none yet.
	state    importState
	id       string
	revision int64
	// leftOut are the jobs that were not stored, stale those that are stored with other progress.
	leftOut, stale SomeJobs
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
		if i.result.DoneAt.IsZero() {
			if err := i.store(ctx, p); err != nil {
				return err
			}
		}
		done += int64(len(p.jobs))
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

// begin reads whether there was an earlier import of the file, and whether it has ended.
func (i *importer) begin(ctx context.Context, id string) error {
	docs, err := getDocuments(ctx, i.Stores[0], importKey(id))
	if err != nil {
		return fmt.Errorf("read the state of the import: %w", err)
	}
	i.id, i.state = id, importState{StartedAt: job.Millis(time.Now())}
	if i.revision = docs[0].Revision; i.revision == 0 {
		return nil
	}
	i.state, err = parseImport(docs[0])
	i.result.DoneAt, i.result.Accepted = i.state.EndedAt, i.state.Accepted
	return err
}

// note writes the document of the import before the first change of a store.
func (i *importer) note(ctx context.Context) error {
	if i.dry || i.revision != 0 {
		return nil
	}
	return i.put(ctx)
}

func (i *importer) put(ctx context.Context) error {
	revision, err := putImport(ctx, i.Stores[0], i.id, i.state, i.revision)
	if err != nil {
		return fmt.Errorf("note the import: %w", err)
	}
	i.revision = revision
	return nil
}

// end compares the ledgers, and ends the import if the stores have what is in the file.
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
	missing := -i.leftOut.Jobs
	for row, n := range i.result.File {
		missing += max(0, n-i.result.Stored[row])
	}
	switch {
	case i.stale.Jobs > 0:
		return &StaleError{i.stale}
	case missing > 0:
		return &MissingError{Jobs: missing}
	}
	i.state.EndedAt = job.Millis(time.Now())
	if err := i.put(ctx); err != nil {
		return err
	}
	if maps.Equal(i.result.File, i.result.Stored) { // another import, which was interrupted, has stored nothing else
		if _, err := endImports(ctx, i.Stores[0], false); err != nil {
			return err
		}
	}
	if i.leftOut.Jobs > 0 {
		return &LeftOutError{i.leftOut}
	}
	return CheckImports(ctx, i.Stores[0])
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
