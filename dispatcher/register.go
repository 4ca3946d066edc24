package dispatcher

import (
	"context"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Register takes jobs, and answers one result for each, in order: one that is refused spoils no other. The jobs must
// have passed job.Validate; what depends on topics and on this installation is checked here. A job without an id gets
// one, a job without a lane gets its URL's host and port.
//
// An error is a *job.InvalidError, a *job.UndeclaredTopicError, or one for which errors.Is(err, store.ErrUnavailable)
// holds: then it is not known whether the job was taken.
func (d *Dispatcher) Register(ctx context.Context, jobs []job.New) []store.Routed {
	results := make([]store.Routed, len(jobs))
	entries := make([]store.Entry, 0, len(jobs))
	at := make([]int, 0, len(jobs))
	now := time.Now()
	topics := &lookup{policies: d.policies}
	for i := range jobs {
		entry, err := d.entry(ctx, topics, jobs[i], now)
		if err != nil {
			results[i].Err = err
			continue
		}
		entries, at = append(entries, entry), append(at, i)
	}
	for k, r := range d.store.Insert(ctx, entries) {
		results[at[k]] = r
	}
	return results
}

// entry completes a registration.
func (d *Dispatcher) entry(ctx context.Context, topics *lookup, n job.New, now time.Time) (store.Entry, error) {
	entry := store.Entry{New: n}
	if n.ID != "" {
		entry.Print = n.Fingerprint()
	}
	if err := d.admit(ctx, topics, &entry.New); err != nil {
		return store.Entry{}, err
	}
	if entry.ID == "" {
		entry.ID = job.NewID(now, d.store.ShardOf(entry.Queue))
	}
	return entry, nil
}

// admit checks a registration against its topic and fills in what it leaves out.
func (d *Dispatcher) admit(ctx context.Context, topics *lookup, n *job.New) error {
	if n.Namespace == "" {
		n.Namespace = job.DefaultNamespace
	}
	if n.Topic == "" {
		n.Topic = job.DefaultTopic
	}
	if n.Method == "" {
		n.Method = "POST"
	}
	topicURL := ""
	if d.opts.Declared || n.URL == "" {
		topic, ok, err := topics.find(ctx, topicName{n.Namespace, n.Topic})
		if err != nil {
			return fmt.Errorf("look up topic %s: %w", n.Topic, err)
		}
		if !ok && d.opts.Declared {
			return &job.UndeclaredTopicError{Topic: n.Topic}
		}
		topicURL = topic.Policy.URL
	}
	target := n.URL
	switch {
	case target == "" && topicURL == "":
		return invalid("/url", "is needed, because the topic "+n.Topic+" has none")
	case target == "":
		target = topicURL
	default:
		if err := d.checkURL(target); err != nil {
			return err
		}
	}
	if n.Lane == "" {
		n.Lane = laneOf(target)
	}
	return nil
}

// checkURL asks the guard.
func (d *Dispatcher) checkURL(target string) error {
	if d.opts.CheckURL == nil {
		return nil
	}
	if err := d.opts.CheckURL(target); err != nil {
		return invalid("/url", err.Error())
	}
	return nil
}

func invalid(field, detail string) error {
	return &job.InvalidError{Faults: []job.Fault{{Field: field, Detail: detail}}}
}
