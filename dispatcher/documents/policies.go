// This part of the package caches the policies of topics.
//
// Claims report the store's revision, so that each attempt is made by policies that are as new as its claim (Sync).
// Registrations and other calls use policies of the last 3 s (Cached). A caller reloads them before it refuses a call
// because of them (Lookup, Reload).

package documents

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// PolicyOptions configures a Cache.
type PolicyOptions struct {
	Settings store.Settings
	// Defaults completes the policies.
	Defaults policy.Topic
	// OpenCredentials returns a topic's credentials; nil: none.
	OpenCredentials func(store.Topic) *secrets.Credentials
	Logger          *slog.Logger
}

// Policies caches the policies of topics. It is safe for concurrent use.
type Policies struct {
	*Cache[*Topic]

	opts     PolicyOptions
	defaults Topic // of topics without a stored policy
}

// A PolicySet is an immutable snapshot of all stored policies.
type PolicySet = Set[*Topic]

// A Topic is a topic's policy.
type Topic struct {
	Stored      store.Topic
	Resolved    policy.Topic         // with defaults applied
	Credentials *secrets.Credentials // nil: none
	Size        int64                // of the stored policy, in bytes
}

// maxAge is the age from which a call of Cached reloads the policies. A change is seen within 3 s (Snapshot).
const maxAge = time.Second

// NewPolicies returns a Cache, without loading the policies.
func NewPolicies(opts PolicyOptions) *Policies {
	c := &Policies{opts: opts, defaults: Topic{Resolved: opts.Defaults}}
	c.Cache = New(Options[*Topic]{
		Settings: opts.Settings, Kind: store.KindTopic, Decode: c.open, Logger: opts.Logger,
	})
	return c
}

// Get returns a topic's cached policy; the defaults if it has none. It takes no lock.
func (c *Policies) Get(namespace, name string) *Topic {
	if t := c.Loaded().Get(namespace, name); t != nil {
		return t
	}
	return &c.defaults
}

// Cached returns the policies as they are or were at most 3 s ago, while the store can be read.
func (c *Policies) Cached(ctx context.Context) (*PolicySet, error) { return c.Snapshot(ctx, maxAge) }

// Resolve returns a topic's policy of Cached with defaults applied.
func (c *Policies) Resolve(ctx context.Context, namespace, name string) policy.Topic {
	c.Refresh(ctx)
	return c.Get(namespace, name).Resolved
}

// Current returns a topic's policy as it is in the store now.
func (c *Policies) Current(ctx context.Context, namespace, name string) (*Topic, error) {
	if _, err := c.Reload(ctx); err != nil {
		return nil, fmt.Errorf("read the policy of topic %s: %w", name, err)
	}
	return c.Get(namespace, name), nil
}

// Refresh reloads policies as Cached does. With an error the cache or the defaults apply.
func (c *Policies) Refresh(ctx context.Context) { _, _ = c.Cached(ctx) }

// LoadFirst loads the policies, and retries until it succeeds: without them, jobs would be judged by default policies.
// It returns false if ctx ends first.
func (c *Policies) LoadFirst(ctx context.Context) bool {
	var again store.Backoff
	for {
		_, err := c.Reload(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		c.opts.Logger.Warn("loading topic policies failed, retrying; deliveries start afterwards", "err", err)
		if !again.Wait(ctx) {
			return false
		}
	}
}

// open decodes a topic's document and opens its credentials, once for each revision: a certificate must stay the same
// pointer. The deliveries of a topic whose policy is not readable are held.
func (c *Policies) open(doc store.Document, _ *Topic) (*Topic, error) {
	stored, err := doc.Topic()
	t := &Topic{
		Stored: stored, Resolved: stored.Policy.WithDefaults(c.defaults.Resolved), Size: int64(len(doc.Value)),
	}
	if err == nil {
		t.Credentials = c.opts.OpenCredentials(stored)
		return t, nil
	}
	c.opts.Logger.Error("topic policy not readable, holding the topic: put its policy again, then resume it",
		"topic", stored.Name, "err", err)
	t.Credentials = &secrets.Credentials{Err: err}
	return t, nil
}
