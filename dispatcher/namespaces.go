package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// DeleteNamespace removes a namespace that has no jobs, also no ended ones, no schedules, no topics with a policy, no
// lanes with settings and no tokens, so that another namespace of this name inherits nothing. A purge first removes its
// schedules, jobs, topics and lanes, until ctx's deadline is near.
//
// It returns what a purge removed, also with an error: store.ErrNotFound, *store.RevisionError or
// *job.NamespaceInUseError, after which the call may be repeated.
func (d *Dispatcher) DeleteNamespace(
	ctx context.Context, deletion store.NamespaceDeletion,
) (done store.TopicDeleted, err error) {
	name := deletion.Name
	n, err := d.Namespace(ctx, name)
	if err == nil && n.Revision == 0 { // the default one, which is not stored
		err = store.ErrNotFound
	}
	if err == nil {
		err = store.CheckCondition(deletion.IfRevision, n.Revision)
	}
	if err == nil {
		err = d.checkNoTokens(ctx, name)
	}
	if err == nil && deletion.Purge {
		err = d.purgeNamespace(ctx, deletion, &done)
	}
	if err == nil {
		err = d.checkEmpty(ctx, name)
	}
	if err == nil {
		err = d.RemoveNamespace(ctx, name, deletion.IfRevision)
	}
	if err != nil {
		if e, ok := errors.AsType[*job.NamespaceInUseError](err); ok {
			e.Purged = deletion.Purge
		}
		return done, fmt.Errorf("delete namespace %s: %w", name, err)
	}
	// What was registered or created since the check would belong to no namespace. The client may have left meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recheckTimeout)
	defer cancel()
	if err = errors.Join(d.checkNoTokens(ctx, name), d.checkEmpty(ctx, name)); err == nil {
		return done, nil
	}
	if _, failed := d.PutNamespace(context.WithoutCancel(ctx), n, store.MustNotExist); failed != nil {
		d.log.Error("a deleted namespace may be in use and could not be restored: put it again", "namespace", name,
			"err", errors.Join(err, failed))
	}
	return done, fmt.Errorf("delete namespace %s: %w", name, err)
}

// recheckTimeout bounds the check of a namespace after its removal.
const recheckTimeout = 10 * time.Second

// checkNoTokens returns a *job.NamespaceInUseError if a namespace has tokens.
func (d *Dispatcher) checkNoTokens(ctx context.Context, namespace string) error {
	tokens, err := d.Tokens(ctx, namespace, "", 1)
	if err == nil && len(tokens) > 0 {
		err = &job.NamespaceInUseError{By: "tokens, such as " + tokens[0].ID}
	}
	return err
}

// checkEmpty returns a *job.NamespaceInUseError if a namespace has jobs, schedules, policies or settings of lanes.
func (d *Dispatcher) checkEmpty(ctx context.Context, namespace string) error {
	usage, err := d.store.Usage(ctx, namespace)
	if err != nil {
		return err
	}
	if usage.Jobs > 0 {
		return &job.NamespaceInUseError{By: fmt.Sprintf("%d unfinished jobs", usage.Jobs)}
	}
	page, err := d.store.List(ctx, store.Filter{Namespace: namespace, Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Jobs) > 0 { // Ringback's own, too
		return &job.NamespaceInUseError{By: "jobs in the state " + string(page.Jobs[0].State) + ", such as " +
			page.Jobs[0].ID}
	}
	if err := d.checkNoSchedules(ctx, namespace); err != nil {
		return err
	}
	return d.eachTopic(ctx, namespace, func(t store.Topic) error {
		if t.Revision != 0 {
			return &job.NamespaceInUseError{By: "topics with a policy, such as " + t.Name}
		}
		lanes, err := d.store.ListLanes(ctx, namespace, t.Name, "", 1)
		if err == nil && len(lanes) > 0 {
			err = &job.NamespaceInUseError{By: "lanes with settings, such as " + lanes[0].Queue.Lane +
				" of the topic " + t.Name}
		}
		return err
	})
}

// purgeNamespace removes the schedules, jobs, topics and lanes of a namespace. Running jobs are only marked.
func (d *Dispatcher) purgeNamespace(
	ctx context.Context, deletion store.NamespaceDeletion, done *store.TopicDeleted,
) error {
	if err := d.deleteSchedules(ctx, deletion.Name); err != nil {
		return err
	}
	jobs := store.TopicDeletion{Namespace: deletion.Name, Actor: deletion.Actor}
	if err := d.purgeTopic(ctx, jobs, done); err != nil {
		return namespaceInUse(err)
	}
	return d.eachTopic(ctx, deletion.Name, func(t store.Topic) error {
		_, err := d.DeleteTopic(ctx, store.TopicDeletion{Namespace: t.Namespace, Name: t.Name})
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return namespaceInUse(err)
	})
}

// namespaceInUse makes the error of a namespace from that of one of its topics.
func namespaceInUse(err error) error {
	if e, ok := errors.AsType[*store.TopicInUseError](err); ok {
		return &job.NamespaceInUseError{By: fmt.Sprintf("%d unfinished jobs, or more than could be removed in time",
			e.Unfinished)}
	}
	return err
}

// eachTopic calls do for each topic of a namespace with a policy or with counts.
func (d *Dispatcher) eachTopic(ctx context.Context, namespace string, do func(store.Topic) error) error {
	for after := ""; ; {
		page, err := d.Topics(ctx, namespace, after, store.MaxBatch)
		if err != nil {
			return err
		}
		for _, t := range page {
			if isOutOfTime(ctx) {
				return &job.NamespaceInUseError{By: "more topics than could be read in time"}
			}
			if err := do(t); err != nil {
				return err
			}
			after = t.Name
		}
		if len(page) < store.MaxBatch {
			return nil
		}
	}
}
