package request

import (
	"context"

	"github.com/ringback/ringback/internal/access"
)

// contextKey is the key of a Principal in a context.
type contextKey struct{}

// WithPrincipal returns a context with a principal.
func WithPrincipal(ctx context.Context, p *access.Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// PrincipalOf returns the principal of a context. Without one it returns access.Nobody.
func PrincipalOf(ctx context.Context) *access.Principal {
	if p, ok := ctx.Value(contextKey{}).(*access.Principal); ok {
		return p
	}
	return access.Nobody
}
