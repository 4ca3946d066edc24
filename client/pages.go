package client

import (
	"context"
	"iter"
	"maps"
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
		q := make(url.Values, len(query)+1)
		maps.Copy(q, query)
		for {
			var p page[T]
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
