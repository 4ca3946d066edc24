package dispatcher

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/job"
)

// DeleteNamespace removes a namespace without unfinished jobs, policies and tokens. Its ended jobs are kept as long as their
// topics' retention says. ifRevision is as for store.CheckCondition. Errors: store.ErrNotFound, *job.NamespaceInUseError.
func (d *Dispatcher) DeleteNamespace(ctx context.Context, name string, ifRevision int64) error {
	if _, err := d.Namespace(ctx, name); err != nil {
		return err
	}
	if by, err := d.usersOf(ctx, name); err != nil || by != "" {
		if err == nil {
			err = &job.NamespaceInUseError{By: by}
		}
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return d.Registry.DeleteNamespace(ctx, name, ifRevision)
}

// usersOf says what keeps a namespace from being removed; empty: nothing.
func (d *Dispatcher) usersOf(ctx context.Context, name string) (string, error) {
	usage, err := d.store.Usage(ctx, name)
	if err != nil {
		return "", err
	}
	if usage.Jobs > 0 {
		return fmt.Sprintf("%d unfinished jobs", usage.Jobs), nil
	}
	set, err := d.policies.Reload(ctx)
	if err != nil {
		return "", err
	}
	for topic := range set.Values {
		if topic.Namespace == name {
			return "topics with a policy, such as " + topic.Name, nil
		}
	}
	tokens, err := d.Tokens(ctx, name, "", 1)
	if err != nil {
		return "", err
	}
	if len(tokens) > 0 {
		return "tokens, such as " + tokens[0].ID, nil
	}
	return "", nil
}
