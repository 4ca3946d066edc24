package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
)

// page is a page of a list.
type page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor"`
}

// list returns the items of a list, page after page. An error is the last pair.
func list[T any](ctx context.Context, c *Client, query url.Values, parts ...string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		where, err := path(parts...)
		if err != nil {
			yield(nil, err)
			return
		}
		q := make(url.Values, len(query)+1)
		for name, v := range query {
			q[name] = v
		}
		for {
			var p page[T]
			if err := c.do(ctx, call{method: http.MethodGet, path: where, query: q, into: &p}); err != nil {
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
