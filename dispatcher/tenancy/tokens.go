package tenancy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Authenticate returns the principal of a token by its text. It allocates nothing for a token that is cached. Errors:
// access.ErrMalformed, access.ErrUnknown, *access.ExpiredError and those of the store.
func (r *Registry) Authenticate(ctx context.Context, text string) (*access.Principal, error) {
	id, err := access.ParseID(text)
	if err != nil {
		return nil, err
	}
	set, err := r.tokens.Get(ctx)
	if err != nil {
		return nil, err
	}
	e := set.Values[id]
	if e == nil {
		if e, err = r.lookUp(ctx, id); err != nil {
			return nil, err
		}
	}
	if !access.HashOf(text).Equal(e.Hash) {
		return nil, access.ErrUnknown
	}
	now := time.Now()
	if !e.ExpiresAt.IsZero() && !now.Before(e.ExpiresAt) {
		return nil, &access.ExpiredError{At: e.ExpiresAt}
	}
	if hour := now.Unix() - now.Unix()%3600; e.usedAt.Load() != hour {
		e.usedAt.Store(hour)
	}
	return e.principal, nil
}

// lookUp finds a token that another process has just created.
func (r *Registry) lookUp(ctx context.Context, id string) (*entry, error) {
	select {
	case r.lookups <- struct{}{}:
		defer func() { <-r.lookups }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	doc, err := r.get(ctx, key(kindToken, id))
	if err != nil {
		return nil, err
	}
	if doc.Revision == 0 {
		return nil, access.ErrUnknown
	}
	set, err := r.tokens.Reload(ctx)
	if err != nil {
		return nil, err
	}
	if e := set.Values[id]; e != nil {
		return e, nil
	}
	return nil, access.ErrUnknown // revoked meanwhile, or not readable
}

// CreateToken stores a token, whose id and hash it sets, and returns its text, which is not stored. Error: *job.QuotaError.
func (r *Registry) CreateToken(ctx context.Context, token access.Token) (created access.Token, text string, err error) {
	set, err := r.tokens.Reload(ctx)
	if err != nil {
		return access.Token{}, "", err
	}
	if len(set.Values) >= MaxTokens {
		return access.Token{}, "", &job.QuotaError{Quota: "tokens", Limit: strconv.Itoa(MaxTokens)}
	}
	text, token.ID = access.NewText()
	token.Hash, token.CreatedAt, token.LastUsedAt = access.HashOf(text), time.Now().UTC().Truncate(time.Millisecond), time.Time{}
	if _, err := r.put(ctx, key(kindToken, token.ID), token, store.MustNotExist); err != nil {
		return access.Token{}, "", err
	}
	return token, text, nil
}

// Tokens returns the tokens of a namespace, or of all if it is empty, in order of id, at most limit after an id.
func (r *Registry) Tokens(ctx context.Context, namespace, after string, limit int) ([]access.Token, error) {
	set, err := r.tokens.Reload(ctx)
	if err != nil {
		return nil, err
	}
	var all []access.Token
	for id, e := range set.Values {
		if id > after && (namespace == "" || e.Namespace == namespace) {
			t := e.Token
			t.LastUsedAt = e.lastUsedAt()
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b access.Token) int { return cmp.Compare(a.ID, b.ID) })
	return all[:min(len(all), limit)], nil
}

// Token returns a token of a namespace, or of any if it is empty. store.ErrNotFound.
func (r *Registry) Token(ctx context.Context, namespace, id string) (access.Token, error) {
	set, err := r.tokens.Reload(ctx)
	if err != nil {
		return access.Token{}, err
	}
	e := set.Values[id]
	if e == nil || namespace != "" && e.Namespace != namespace {
		return access.Token{}, store.ErrNotFound
	}
	t := e.Token
	t.LastUsedAt = e.lastUsedAt()
	return t, nil
}

// RevokeToken removes a token of a namespace, or of any if it is empty. It holds in all processes within 5 s.
// store.ErrNotFound.
func (r *Registry) RevokeToken(ctx context.Context, namespace, id string) error {
	if _, err := r.Token(ctx, namespace, id); err != nil {
		return err
	}
	if _, err := r.put(ctx, key(kindToken, id), nil, 0); err != nil {
		return err
	}
	if _, err := r.tokens.Reload(ctx); err != nil { // it is revoked: the others notice it as they do elsewhere
		r.log.Warn("reloading tokens failed; the token is revoked within 5s", "token", id, "err", err)
	}
	return nil
}

// lastUseInterval is the interval at which last uses are written.
const lastUseInterval = time.Minute

// Run keeps quotas up to date and writes the hours in which tokens were used, at most once an hour for each token, until ctx
// ends.
func (r *Registry) Run(ctx context.Context) {
	var keeping sync.WaitGroup
	defer keeping.Wait()
	keeping.Go(func() { r.namespaces.Keep(ctx) })
	tick := time.NewTicker(lastUseInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.writeLastUses(ctx)
		}
	}
}

// maxLastUses bounds the writes of one tick.
const maxLastUses = 256

// writeLastUses writes the last uses that are not stored. Those that fail are written at the next tick. A write requires the
// cached revision, so it cannot bring a revoked token back.
func (r *Registry) writeLastUses(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastUseInterval)
	defer cancel()
	set, err := r.tokens.Get(ctx)
	if err != nil {
		return // never loaded, so none was used
	}
	written := 0
	for id, e := range set.Values {
		used := e.lastUsedAt()
		if !used.After(e.LastUsedAt) {
			continue
		}
		token := e.Token
		token.LastUsedAt = used
		if _, err := r.put(ctx, key(kindToken, id), token, set.Revision(id)); err != nil && !errors.Is(err, store.ErrVersion) {
			r.log.Warn("writing the last use of a token failed, retrying", "token", id, "err", err)
			return
		}
		if written++; written == maxLastUses {
			return
		}
	}
}
