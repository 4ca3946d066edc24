package deadpages

import (
	"net/url"
	"strings"

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
