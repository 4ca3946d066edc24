package client

import (
	"context"
	"iter"
	"net/http"
)

// NamespaceRequest are the settings of a namespace.
type NamespaceRequest struct {
	Store string `json:"store,omitzero"` // only at the creation; empty: main
	Quota Quota  `json:"quota,omitzero"`
}

// Quota bounds what a namespace uses. What is zero is not bounded.
type Quota struct {
	Pending int64  `json:"pending,omitzero"` // unfinished jobs
	Bytes   string `json:"bytes,omitzero"`   // of the unfinished jobs, such as 1GiB
	Rate    string `json:"rate,omitzero"`    // registrations, such as 500/s
	// KeptBytes is the size of the ended jobs that are kept, from which on nothing is registered, such as 4GiB.
	KeptBytes string `json:"kept_bytes,omitzero"`
	// Settings is the number of topics with a policy, lanes with settings and schedules, SettingsBytes their size.
	Settings      int64  `json:"settings,omitzero"`
	SettingsBytes string `json:"settings_bytes,omitzero"`
}

// NamespaceUsage is what a namespace uses of what its Quota bounds.
type NamespaceUsage struct {
	Pending       int64 `json:"pending"`
	Bytes         int64 `json:"bytes"`
	KeptBytes     int64 `json:"kept_bytes"`
	Settings      int64 `json:"settings"`
	SettingsBytes int64 `json:"settings_bytes"`
}

// Namespace is a namespace. PutNamespace accepts the NamespaceRequest of what GetNamespace returned.
type Namespace struct {
	Answer
	NamespaceRequest

	Name     string `json:"namespace"`
	Revision int64  `json:"revision"` // for IfRevision; 0: it was never put
	// Usage is set by GetNamespace, unless the namespace's store is unavailable or did not count it in time.
	Usage *NamespaceUsage `json:"usage"`
}

// Namespaces returns the namespaces in order of name. It requires a root token, as the other methods about namespaces.
func (c *Client) Namespaces(ctx context.Context) iter.Seq2[*Namespace, error] {
	return list[Namespace](ctx, c, nil, "/v1/namespaces")
}

// NamespacesPage returns a page of Namespaces.
func (c *Client) NamespacesPage(ctx context.Context, o PageOptions) (*Page[Namespace], error) {
	return readPage[Page[Namespace]](ctx, c, o, "/v1/namespaces")
}

// GetNamespace returns a namespace.
func (c *Client) GetNamespace(ctx context.Context, name string) (*Namespace, error) {
	return answer[Namespace](ctx, c, get(), nil, "/v1/namespaces/", name)
}

// PutNamespace creates a namespace on a store, or sets its quota.
func (c *Client) PutNamespace(
	ctx context.Context, name string, n NamespaceRequest, conditions ...Condition,
) (*Namespace, error) {
	return answer[Namespace](ctx, c, change(http.MethodPut, conditions), n, "/v1/namespaces/", name)
}

// DeleteNamespace removes an empty namespace. With purge its schedules, jobs, topics and lanes are removed first;
// ErrConflict says what is left.
func (c *Client) DeleteNamespace(ctx context.Context, name string, purge bool, conditions ...Condition) error {
	return c.deletePurging(ctx, purge, conditions, "/v1/namespaces/", name)
}
