package web

import (
	"slices"
	"time"

	"github.com/ringback/ringback/client"
)

// The time for which a page looks for jobs that match. What it looked at by then it says.
const (
	// SearchTime leaves time for the rest of a page, which is there within 50 ms.
	SearchTime = 20 * time.Millisecond
	// LongSearchTime is that of a search with which the reader goes on.
	LongSearchTime = time.Second
)

// SearchTime returns the time for which the page of this visit looks for jobs.
func (v *Visit) SearchTime() time.Duration {
	if v.Query("search") == "long" {
		return LongSearchTime
	}
	return SearchTime
}

// PathSearch returns the link of a page that goes on with a search; pairs are its parameters.
func (v *Visit) PathSearch(path string, pairs ...string) string {
	return v.PathQuery(path, append(slices.Clone(pairs), "search", "long")...)
}

// Pager is the data of the template "pager": links to other pages of a list. Cursors lead forward only; the browser
// leads back.
type Pager struct {
	First, Next string
	// GoOn goes on with a search that ended before the page was full, and Looked is a sentence that says so.
	GoOn, Looked string
}

// SearchPager returns the links of a page of jobs that a search fills, at a path with the parameters of pairs. These
// have the times of a filter, not how long ago they were: a cursor is valid for its filter. limit is the number of jobs
// of a full page.
func (v *Visit) SearchPager(path string, pairs []string, page *client.JobPage, limit int, looked string) Pager {
	var p Pager
	if v.Query("cursor") != "" {
		p.First = v.PathQuery(path, pairs...)
	}
	next := append(slices.Clone(pairs), "cursor", page.NextCursor)
	switch {
	case page.NextCursor == "":
	case len(page.Items) < limit:
		p.GoOn, p.Looked = v.PathSearch(path, next...), looked
	default:
		p.Next = v.PathQuery(path, next...)
	}
	return p
}

// Pager returns the links of a list on this page, whose cursor is the query parameter cursor. next is the cursor of the
// next page; empty: it is the last.
func (v *Visit) Pager(next string) Pager {
	q := v.Request.URL.Query()
	q.Del("live")
	link := func(cursor string) string {
		q.Del("cursor")
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		to := v.Base + v.Request.URL.EscapedPath()
		if len(q) > 0 {
			to += "?" + q.Encode()
		}
		return to
	}
	var p Pager
	if v.Query("cursor") != "" {
		p.First = link("")
	}
	if next != "" {
		p.Next = link(next)
	}
	return p
}
