package tenancy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/internal/access"
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
	set, err := r.tokens.Snapshot(ctx, maxAge)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if now.Sub(set.LoadedAt) > maxOutage {
		return nil, &store.UnavailableError{Reason: "revocations of tokens could not be read for " + maxOutage.String()}
	}
	e := find(set, id)
	if e == nil {
		if e, err = r.lookUp(ctx, id); err != nil {
			return nil, err
		}
	}
	if !access.HashOf(text).Equal(e.Hash) {
		return nil, access.ErrUnknown
	}
	if !e.ExpiresAt.IsZero() && !now.Before(e.ExpiresAt) {
		return nil, &access.ExpiredError{At: e.ExpiresAt}
	}
	e.uses.add(now)
	return e.principal, nil
}

// lookUpTimeout bounds the time for which a request with an unknown token waits.
const lookUpTimeout = time.Second

// lookUp finds a token that another process has just created. Concurrent calls share one call of the store, so that
// clients without a token cannot load it.
func (r *Registry) lookUp(ctx context.Context, id string) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	set, err := r.tokens.Reload(ctx)
	if err != nil {
		return nil, err
	}
	if e := find(set, id); e != nil {
		return e, nil
	}
	return nil, access.ErrUnknown // or not readable
}

// CreateToken stores a token, whose id and hash it sets, and returns its text, which is not stored. reserved says that
// it may be one of those that are reserved for root tokens. Error: *job.LimitError.
func (r *Registry) CreateToken(
	ctx context.Context, token access.Token, reserved bool,
) (created access.Token, text string, err error) {
	set, err := r.tokens.Reload(ctx)
	if err != nil {
		return access.Token{}, "", err
	}
	if err := checkRoom(set, token.Namespace, reserved); err != nil {
		return access.Token{}, "", err
	}
	text, token.ID = access.NewText()
	token.Hash, token.CreatedAt = access.HashOf(text), time.Now().UTC().Truncate(time.Millisecond)
	if _, err := r.put(ctx, key(KindToken, token.ID), token, store.MustNotExist); err != nil {
		return access.Token{}, "", err
	}
	return token, text, nil
}

// checkRoom returns an error if the namespace, or all together, have as many tokens as they may have.
func checkRoom(set *documents.Set[*entry], namespace string, reserved bool) error {
	of, limit := "tokens", MaxTokens
	n := len(set.Values)
	if !reserved {
		of, limit = "tokens of all namespaces", MaxTokens-reservedTokens
		inNamespace := 0
		for _, e := range set.Values {
			if e.Namespace == namespace {
				inNamespace++
			}
		}
		if inNamespace >= MaxTokensOfNamespace {
			of, limit, n = "tokens of the namespace "+namespace, MaxTokensOfNamespace, inNamespace
		}
	}
	if n < limit {
		return nil
	}
	return &job.LimitError{
		What: of, Limit: limit,
		Remedy: "revoke those that are not used: each has last_used_at",
	}
}

// Tokens returns the tokens of a namespace, or of all if it is empty, in order of id, at most limit after an id.
func (r *Registry) Tokens(ctx context.Context, namespace, after string, limit int) ([]access.Token, error) {
	set, err := r.tokens.Reload(ctx)
	if err != nil {
		return nil, err
	}
	var all []*entry
	for _, e := range set.Values {
		if e.ID > after && (namespace == "" || e.Namespace == namespace) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.ID, b.ID) })
	return r.withLastUses(ctx, all[:min(len(all), limit)])
}

// Token returns a token of a namespace, or of any if it is empty. store.ErrNotFound.
func (r *Registry) Token(ctx context.Context, namespace, id string) (access.Token, error) {
	set, err := r.tokens.Reload(ctx)
	if err != nil {
		return access.Token{}, err
	}
	e := find(set, id)
	if e == nil || namespace != "" && e.Namespace != namespace {
		return access.Token{}, store.ErrNotFound
	}
	tokens, err := r.withLastUses(ctx, []*entry{e})
	if err != nil {
		return access.Token{}, err
	}
	return tokens[0], nil
}

// RevokeToken removes a token of a namespace, or of any if it is empty. It holds in all processes within 5 s.
// store.ErrNotFound.
func (r *Registry) RevokeToken(ctx context.Context, namespace, id string) error {
	if _, err := r.Token(ctx, namespace, id); err != nil {
		return err
	}
	if _, err := r.put(ctx, key(KindToken, id), nil, 0); err != nil {
		return err
	}
	if _, err := r.tokens.Reload(ctx); err != nil { // it is revoked: the others notice it as they do elsewhere
		r.log.Warn("reloading tokens failed; the token is revoked within 5s", "token", id, "err", err)
	}
	return nil
}
