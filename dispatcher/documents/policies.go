// This part of the package caches the policies of topics.
//
// Claims report the store's revision, so a process that claims reloads the cache when it changes (Sync), without
// polling. Other callers name the age at which they need it reloaded (Snapshot), or reload it (Reload): see package
// documents.

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
	Settings store.SharedSettings
	// Defaults completes the policies.
	Defaults policy.Topic
	// OpenCredentials returns a topic's credentials; nil: none.
	OpenCredentials func(store.Topic) *secrets.Credentials
	// NoClaims is set in a process without claims, which sees no new revision.
	NoClaims bool
	Logger   *slog.Logger
}

// Policies caches the policies of topics. It is safe for concurrent use.
type Policies struct {
	*Cache[*Topic]

	opts     PolicyOptions
	maxAge   time.Duration // of Cached
	defaults Topic         // of topics without a stored policy
}

// A PolicySet is an immutable snapshot of all stored policies.
type PolicySet = Set[*Topic]

// A Topic is a topic's policy.
type Topic struct {
	Stored      store.Topic
	Resolved    policy.Topic         // with defaults applied
	Credentials *secrets.Credentials // nil: none
}

const (
	// refreshAfter is the age at which Refresh reloads: a topic's rate may keep the process from claiming.
	refreshAfter = 5 * time.Second
	// noClaimsMaxAge is the maximum age of the cache in a process without claims.
	noClaimsMaxAge = time.Second
)

// NewPolicies returns a Cache, without loading the policies.
func NewPolicies(opts PolicyOptions) *Policies {
	c := &Policies{opts: opts, maxAge: AnyAge, defaults: Topic{Resolved: opts.Defaults}}
	if opts.NoClaims {
		c.maxAge = noClaimsMaxAge
	}
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

// Cached returns the policies for a registration: in a process without claims at most a second old.
func (c *Policies) Cached(ctx context.Context) (*PolicySet, error) { return c.Snapshot(ctx, c.maxAge) }

// Resolve returns a topic's policy with defaults applied. A process without claims reloads it as Refresh does.
func (c *Policies) Resolve(ctx context.Context, namespace, name string) policy.Topic {
	_, _ = c.Snapshot(ctx, max(refreshAfter, c.maxAge)) // with an error the cache or the defaults apply
	return c.Get(namespace, name).Resolved
}

// Current returns a topic's policy as it is in the store now.
func (c *Policies) Current(ctx context.Context, namespace, name string) (*Topic, error) {
	if _, err := c.Reload(ctx); err != nil {
		return nil, fmt.Errorf("read the policy of topic %s: %w", name, err)
	}
	return c.Get(namespace, name), nil
}

// Refresh reloads policies that are older than refreshAfter.
func (c *Policies) Refresh(ctx context.Context) { _, _ = c.Snapshot(ctx, refreshAfter) }

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
	t := &Topic{Stored: stored, Resolved: stored.Policy.WithDefaults(c.defaults.Resolved)}
	if err == nil {
		t.Credentials = c.opts.OpenCredentials(stored)
		return t, nil
	}
	c.opts.Logger.Error("topic policy not readable, holding the topic: put its policy again, then resume it",
		"topic", stored.Name, "err", err)
	t.Credentials = &secrets.Credentials{Err: err}
	return t, nil
}
