package client

import (
	"context"
	"iter"
	"time"
)

// TokenRequest is a token to create.
type TokenRequest struct {
	Name      string        `json:"name"`
	Role      string        `json:"role"` // read, publish, operate, admin
	Namespace string        `json:"namespace,omitzero"`
	Topics    []string      `json:"topics,omitzero"` // such as order.*; empty: all
	Bodies    *bool         `json:"bodies,omitzero"`
	ExpiresIn time.Duration `json:"expires_in,omitzero"` // zero: never
}

// Token is a token. Only CreateToken shows its secret, in Token.
type Token struct {
	Answer

	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Role        string    `json:"role"`
	Namespace   string    `json:"namespace"`
	Topics      []string  `json:"topics"`
	Bodies      bool      `json:"bodies"`
	CreatedAt   time.Time `json:"created_at"`
	CreatedBy   string    `json:"created_by"`
	CreatedByID string    `json:"created_by_id"`
	ExpiresAt   time.Time `json:"expires_at"`   // zero: never
	LastUsedAt  time.Time `json:"last_used_at"` // to the hour; zero: it was not used
	Token       string    `json:"token"`
}

// Tokens returns the tokens in order of id.
func (c *Client) Tokens(ctx context.Context) iter.Seq2[*Token, error] {
	return list[Token](ctx, c, nil, "/v1/tokens")
}

// TokensPage returns a page of Tokens.
func (c *Client) TokensPage(ctx context.Context, o PageOptions) (*Page[Token], error) {
	return readPage[Page[Token]](ctx, c, o, "/v1/tokens")
}

// CreateToken creates a token and returns it with its secret, which is shown only here.
func (c *Client) CreateToken(ctx context.Context, t TokenRequest) (*Token, error) {
	return answer[Token](ctx, c, onceOf(nil), t, "/v1/tokens")
}

// GetToken returns a token without its secret.
func (c *Client) GetToken(ctx context.Context, id string) (*Token, error) {
	return answer[Token](ctx, c, get(), nil, "/v1/tokens/", id)
}

// RevokeToken revokes a token. Within 5 seconds no process accepts it any more.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.send(ctx, remove(nil), nil, "/v1/tokens/", id)
}

// Principal is whose a token is, and what it may do.
type Principal struct {
	Answer

	Actor     string    `json:"actor"` // empty: no token is required
	TokenID   string    `json:"token_id"`
	Role      string    `json:"role"`
	Root      bool      `json:"root"`
	Namespace string    `json:"namespace"`
	Topics    []string  `json:"topics"`
	Bodies    bool      `json:"bodies"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Whoami returns whose the client's token is.
func (c *Client) Whoami(ctx context.Context) (*Principal, error) {
	return answer[Principal](ctx, c, get(), nil, "/v1/whoami")
}
