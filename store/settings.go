package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Settings stores documents: the policies of topics, the settings of lanes. Engines do not read their values. A Store
// has the documents that apply to all shards, a Shard those of its lanes.
type Settings interface {
	// PutDocument writes a document and returns it with its new revision, which is the time by the store's clock, as
	// NextRevision says. Without a value it removes the document, and returns revision 0. A revision of doc other
	// than 0 must equal the stored one (MustNotExist: none may be stored), else the error is ErrVersion. A repeat with
	// the same token returns what the first call returned.
	//
	// The limits of a topic's document apply to claims, carries and sweeps that begin after PutDocument has returned,
	// and those of a lane's to claims. Due jobs of a resumed topic, or of one that is delivered in another way, are
	// notified within a second, those of a resumed lane at once. Limits of other kinds are ignored.
	PutDocument(ctx context.Context, token Token, doc Document, limits policy.Limits) (Document, error)

	// GetDocuments reads up to MaxBatch documents: one for each key, in order, with revision 0 where none is stored.
	GetDocuments(ctx context.Context, keys []DocumentKey) ([]Document, error)

	// ListDocuments lists the documents of after's kind, and of lanes those of after's topic, in order of key: at most
	// limit of those after the key after; limit 0: all. It also returns the newest revision of the kind, which grows
	// with every change, and is not newer than the documents.
	ListDocuments(ctx context.Context, after DocumentKey, limit int) (docs []Document, revision int64, err error)

	// ListChanges returns what changed in the documents of a kind (of lanes: in those of all topics) since a revision
	// that it returned before, so that readers who keep the documents pay for a change only. An engine knows the
	// revisions of the last KeptChanges changes, with their removals. For any other it returns all documents: for 0,
	// for one that is older, and for one that a failover or a restored backup took back, even if newer ones were given
	// since. It may do so at any time. ClaimResult reports the newest revision of topics.
	ListChanges(ctx context.Context, kind string, since int64) (Changes, error)
}

// Kinds of documents that engines know. Others need no limits.
const (
	KindTopic = "topic" // a policy.Topic
	KindLane  = "lane"  // a policy.Lane
)

// DocumentKey names a document.
type DocumentKey struct {
	Kind      string
	Namespace string
	Name      string // of the topic
	Lane      string // only of KindLane
}

// LaneKey returns the key of a lane's settings.
func LaneKey(q job.Queue) DocumentKey {
	return DocumentKey{Kind: KindLane, Namespace: q.Namespace, Name: q.Topic, Lane: q.Lane}
}

// Queue returns the queue of a lane's document.
func (k DocumentKey) Queue() job.Queue {
	return job.Queue{Namespace: k.Namespace, Topic: k.Name, Lane: k.Lane}
}

// Compare orders keys.
func (k DocumentKey) Compare(o DocumentKey) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name),
		cmp.Compare(k.Lane, o.Lane))
}

// Document is a revisioned value.
type Document struct {
	Key   DocumentKey
	Value []byte // JSON; empty: none
	// Revision grows with each change, also after a failover that rolled changes back; 0: none is stored.
	Revision int64
	// Durability is that of the PutDocument that returned the document, as in job.Job.
	Durability *job.Durability
}

// Changes is the result of ListChanges.
type Changes struct {
	// Documents are those that changed, each once and as it is stored now, in any order. Revision 0: it was removed.
	Documents []Document
	// IsComplete is set if Documents are all documents of the kind. The reader drops those that it has besides.
	IsComplete bool
	// Revision is the newest of the kind, and not newer than Documents.
	Revision int64
}

// NextRevision returns the revision after the last one of a kind, at a time in Unix milliseconds. Revisions follow the
// clock, so that none is given again when a failover or a backup takes the newest documents back, and so that the
// revision of a schedule says when it was changed.
func NextRevision(last, now int64) int64 { return max(last+1, now) }

// CheckRevision returns ErrVersion if a write that requires a revision must not replace the stored one.
func CheckRevision(required, stored int64) error {
	if required != 0 && max(required, 0) != stored {
		return ErrVersion
	}
	return nil
}

// CheckCondition returns a RevisionError if a change that requires a revision must not be made to the stored one. Zero
// requires nothing, MustExist and MustNotExist require that a document is stored, or none.
func CheckCondition(required, stored int64) error {
	if required == 0 || required == stored || required == MustExist && stored > 0 || required == MustNotExist &&
		stored == 0 {
		return nil
	}
	return &RevisionError{Revision: stored}
}

// ChangeOptions are the condition and the author of a change of settings.
type ChangeOptions struct {
	// IfRevision is the required revision, as in CheckCondition. Zero: any revision.
	IfRevision int64
	// Updated is recorded as the last change. Its At is in whole milliseconds, UTC: job.Millis(time.Now()). Zero: the
	// one that is recorded stays, as when secrets are sealed anew.
	Updated policy.Update
}

// ErrDryRun is the error of a change that is only checked: nothing is written, and the call returns what would be
// stored.
var ErrDryRun = errors.New("dry run")

// DryRun returns change, or with dry a function that calls it and returns ErrDryRun in place of nil.
func DryRun[T any](change func(*T) error, dry bool) func(*T) error {
	if !dry {
		return change
	}
	return func(v *T) error {
		if err := change(v); err != nil {
			return err
		}
		return ErrDryRun
	}
}

// Topic is the stored policy of a topic, without defaults.
type Topic struct {
	Namespace string
	Name      string
	Policy    policy.Topic
	Updated   policy.Update
	// Revision and Durability are those of the document.
	Revision   int64
	Durability *job.Durability
	// Unreadable is set when the document cannot be decoded. Policy is then a pause.
	Unreadable bool
}

// Lane is the stored settings of a lane.
type Lane struct {
	Queue    job.Queue
	Settings policy.Lane
	Updated  policy.Update
	// Revision and Durability are those of the document; revision 0: no settings are stored.
	Revision   int64
	Durability *job.Durability
	// Unreadable is set when the document cannot be decoded. Settings is then a pause.
	Unreadable bool
}

// Topic decodes a topic's document. With ErrUnreadable the policy is a pause.
func (d Document) Topic() (Topic, error) {
	t := Topic{Namespace: d.Key.Namespace, Name: d.Key.Name, Revision: d.Revision, Durability: d.Durability}
	if err := d.decode(&t.Policy, &t.Updated); err != nil {
		t.Policy, t.Unreadable = policy.Topic{Paused: true}, true
		return t, fmt.Errorf("topic %s: %w", t.Name, err)
	}
	return t, nil
}

// Lane decodes a lane's document. With ErrUnreadable the settings are a pause.
func (d Document) Lane() (Lane, error) {
	l := Lane{Queue: d.Key.Queue(), Revision: d.Revision, Durability: d.Durability}
	if err := d.decode(&l.Settings, &l.Updated); err != nil {
		l.Settings, l.Unreadable = policy.Lane{Paused: true}, true
		return l, fmt.Errorf("lane %s: %w", l.Queue, err)
	}
	return l, nil
}

// decode reads the settings of the value and their last change; of a document that is not stored nothing.
func (d Document) decode(settings any, updated *policy.Update) error {
	if d.Revision == 0 {
		return nil
	}
	if err := errors.Join(json.Unmarshal(d.Value, settings), json.Unmarshal(d.Value, updated)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return nil
}

// PutTopic writes a topic's policy, with PutDocument.
func PutTopic(ctx context.Context, s Settings, t Topic) (Topic, error) {
	key := DocumentKey{Kind: KindTopic, Namespace: t.Namespace, Name: t.Name}
	doc, err := s.PutDocument(ctx, NewToken(), Document{Key: key, Value: encode(struct {
		policy.Topic
		policy.Update
	}{t.Policy, t.Updated}), Revision: t.Revision}, t.Policy.Limits())
	if err != nil {
		return Topic{}, fmt.Errorf("put topic %s: %w", t.Name, err)
	}
	t.Revision, t.Durability, t.Unreadable = doc.Revision, doc.Durability, false
	return t, nil
}

// DeleteTopic removes a topic's policy, with PutDocument. The default limits apply to its jobs.
func DeleteTopic(ctx context.Context, s Settings, t Topic) error {
	key := DocumentKey{Kind: KindTopic, Namespace: t.Namespace, Name: t.Name}
	if _, err := s.PutDocument(ctx, NewToken(), Document{Key: key, Revision: t.Revision}, policy.Limits{}); err != nil {
		return fmt.Errorf("delete topic %s: %w", t.Name, err)
	}
	return nil
}

// PutLane writes a lane's settings on its shard, with PutDocument. Zero settings remove them.
func PutLane(ctx context.Context, s Settings, token Token, l Lane) (Lane, error) {
	doc := Document{Key: LaneKey(l.Queue), Revision: l.Revision}
	if l.Settings.IsZero() {
		l.Settings, l.Updated = policy.Lane{}, policy.Update{}
	} else {
		doc.Value = encode(struct {
			policy.Lane
			policy.Update
		}{l.Settings, l.Updated})
	}
	doc, err := s.PutDocument(ctx, token, doc, l.Settings.Limits())
	if err != nil {
		return Lane{}, fmt.Errorf("put lane %s: %w", l.Queue.Lane, err)
	}
	l.Revision, l.Durability, l.Unreadable = doc.Revision, doc.Durability, false
	return l, nil
}

// GetLanes reads the settings of up to MaxBatch lanes of a shard. Unreadable ones are pauses.
func GetLanes(ctx context.Context, s Settings, queues []job.Queue) ([]Lane, error) {
	keys := make([]DocumentKey, len(queues))
	for i, q := range queues {
		keys[i] = LaneKey(q)
	}
	docs, err := s.GetDocuments(ctx, keys)
	return lanesOf(docs), err
}

// ListLanes lists the lanes of a topic on a shard that have settings, in order of name, at most limit (1 to MaxBatch)
// after the name after. Unreadable settings are pauses.
func ListLanes(ctx context.Context, s Settings, namespace, topic, after string, limit int) ([]Lane, error) {
	docs, _, err := s.ListDocuments(ctx, LaneKey(job.Queue{Namespace: namespace, Topic: topic, Lane: after}), limit)
	return lanesOf(docs), err
}

func lanesOf(docs []Document) []Lane {
	lanes := make([]Lane, len(docs))
	for i, doc := range docs {
		lanes[i], _ = doc.Lane()
	}
	return lanes
}

// encode returns the JSON of a policy or of settings.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("store: settings always have a JSON form: " + err.Error())
	}
	return text
}
