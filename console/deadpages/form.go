package deadpages

import (
	"net/url"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/web"
)

// readSelection reads the filter of a query or a form. other are the names of the other parameters that it may have.
func readSelection(v *web.Visit, q url.Values, other ...string) *filter.Form {
	s := filter.Read(v, q, append(other, "more")...)
	if needsTopic(v) && s.Topic == "" && len(v.Who.Topics) == 1 && !strings.Contains(v.Who.Topics[0], "*") {
		s.Topic = v.Who.Topics[0]
	}
	s.Few = []string{"topic", "lane", "reason", "status", "ended_after"}
	return s
}

// pageOf returns the query of a page of the jobs that the filter selects.
func pageOf(f filter.Filter, cursor string, limit int, within time.Duration) client.Query {
	q := f.Query()
	q.Cursor, q.Limit, q.Within = cursor, limit, within
	return q
}

// groupQuery returns the query that counts what the filter selects.
func groupQuery(f filter.Filter, within time.Duration) client.Query {
	q := f.Query()
	q.Within = within
	return q
}
