package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// kindImport is the kind of the documents of imports, which the main store has under the ids of exports.
const kindImport = "import"

// importState is the value of the document of an import, which is written before anything else and at the end.
type importState struct {
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Accepted: AcceptImports has ended it.
	Accepted bool `json:"accepted,omitempty"`
}

func importKey(id string) store.DocumentKey {
	return store.DocumentKey{Kind: kindImport, Namespace: job.DefaultNamespace, Name: id}
}

func parseImport(doc store.Document) (state importState, err error) {
	if err := json.Unmarshal(doc.Value, &state); err != nil {
		return state, fmt.Errorf("read the state of an import: %w: %w", store.ErrUnreadable, err)
	}
	return state, nil
}

// putImport writes the state of an import over the revision of its document, and returns its new revision.
func putImport(ctx context.Context, main store.Settings, id string, state importState, revision int64) (int64, error) {
	value, err := json.Marshal(state)
	if err != nil {
		return 0, err
	}
	token, doc := store.NewToken(), store.Document{Key: importKey(id), Value: value, Revision: cmp.Or(revision,
		store.MustNotExist)}
	err = retry(ctx, func() (err error) {
		doc, err = main.PutDocument(ctx, token, doc, policy.Limits{})
		return err
	})
	return doc.Revision, err
}

// An UnfinishedImportError is the error of stores in which an import was interrupted.
type UnfinishedImportError struct{ StartedAt time.Time }

func (e *UnfinishedImportError) Error() string {
	return fmt.Sprintf("an import that began at %s is not complete: repeat ringback import with the same file; or "+
		"keep what it has stored with ringback import --accept",
		e.StartedAt.UTC().Format(time.RFC3339))
}

// CheckImports returns an UnfinishedImportError if a main store has an import that is not complete. Its jobs must not
// be delivered before: a repeated import would find them changed, or store those that were removed again.
func CheckImports(ctx context.Context, main store.Settings) error {
	return eachUnfinished(ctx, main, func(_ store.Document, state importState) error {
		return &UnfinishedImportError{StartedAt: state.StartedAt}
	})
}

// AcceptImports ends the imports that are not complete, so that what they have stored is delivered. It returns their
// number.
func AcceptImports(ctx context.Context, o Options) (n int, err error) {
	ctx, unlock, err := o.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return endImports(ctx, o.Stores[0], true)
}

// endImports ends all imports of a main store.
func endImports(ctx context.Context, main store.Settings, accepted bool) (n int, err error) {
	err = eachUnfinished(ctx, main, func(doc store.Document, state importState) error {
		state.EndedAt, state.Accepted = job.Millis(time.Now()), accepted
		n++
		_, err := putImport(ctx, main, doc.Key.Name, state, doc.Revision)
		return err
	})
	return n, err
}

// eachUnfinished calls do for the imports of a main store that are not complete.
func eachUnfinished(
	ctx context.Context, main store.Settings, do func(doc store.Document, state importState) error,
) error {
	return eachDocument(ctx, main, kindImport, func(doc store.Document) error {
		state, err := parseImport(doc)
		if err != nil || !state.EndedAt.IsZero() {
			return err
		}
		return do(doc, state)
	})
}
