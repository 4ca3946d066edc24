package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"

	"github.com/ringback/ringback/client/internal/wire"
)

// PageOptions select a page of a list.
type PageOptions struct {
	Cursor string `json:"cursor"` // NextCursor of the page before; empty: the first page
	Limit  int    `json:"limit"`  // items of a page, 1 to 500; zero: 50
}

// Page is a page of a list.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor"` // empty: it is the last page
}

// readPage requests a page.
func readPage[T any](ctx context.Context, c *Client, o PageOptions, parts ...string) (*T, error) {
	return answer[T](ctx, c, call{method: http.MethodGet, query: wire.Values(o)}, nil, parts...)
}

// list returns the items of a list, page after page. An error is the last pair.
func list[T any](ctx context.Context, c *Client, query url.Values, parts ...string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		q := make(url.Values, len(query)+1)
		maps.Copy(q, query)
		for {
			var p Page[T]
			if err := c.send(ctx, call{method: http.MethodGet, query: q, into: &p}, nil, parts...); err != nil {
				yield(nil, err)
				return
			}
			for i := range p.Items {
				if !yield(&p.Items[i], nil) {
					return
				}
			}
			if p.NextCursor == "" {
				return
			}
			q.Set("cursor", p.NextCursor)
		}
	}
}
