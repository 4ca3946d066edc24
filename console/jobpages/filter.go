package jobpages

import (
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/web"
)

// pageSize is the number of jobs on a page.
const pageSize = 50

// selection is what a list is filtered by.
type selection struct {
	*filter.Form

	order, cursor string
	active        []param // of the filter, as the API has them
}

// param is a parameter of the API's list.
type param struct{ name, value string }

// readSelection reads what a request filters by.
func readSelection(v *web.Visit) *selection {
	s := &selection{
		Form:  filter.Read(v, v.Request.URL.Query(), "id", "order", "cursor", "search", "live", "more"),
		order: v.Query("order"), cursor: v.Query("cursor"),
	}
	s.Few = []string{"topic", "state", "lane"}
	s.Extra = []web.Field{{
		Name: "order", Label: "Order", Kind: "select",
		Options: []web.Link{{Text: "newest first"}, {To: "oldest", Text: "oldest first"}},
	}}
	pairs := s.Pairs()
	for i := 0; i < len(pairs); i += 2 {
		s.active = append(s.active, param{pairs[i], pairs[i+1]})
	}
	return s
}

// request returns the request for the page of the list.
func (s *selection) request(within time.Duration) client.Query {
	q := s.Query()
	q.Order, q.Cursor, q.Limit, q.Within = s.order, s.cursor, pageSize, within
	return q
}

// pairs returns the parameters of a link to the same list, without that at an index; -1: all.
func (s *selection) pairs(without int) []string {
	var pairs []string
	for i, p := range s.active {
		if i != without {
			pairs = append(pairs, p.name, p.value)
		}
	}
	return append(pairs, "order", s.order)
}

// only reports whether the list is filtered by nothing but some parameters.
func (s *selection) only(names ...string) bool {
	return !slices.ContainsFunc(s.active, func(p param) bool { return !slices.Contains(names, p.name) })
}

// timeNames are what a time of a job is called.
var timeNames = map[string]string{"created": "registered", "due": "due", "ended": "ended"}

// words returns a parameter as people say it.
func (p param) words() string {
	value := p.value
	switch p.name {
	case "state":
		value = strings.ReplaceAll(value, ",", " or ")
	case "label":
		value = filter.LabelText(value)
	case "kind":
		if value == "all" {
			return "of every kind"
		}
	case "id_prefix":
		return "id begins with " + value
	default:
		if what, is := strings.CutSuffix(p.name, "_before"); is {
			return timeNames[what] + " before " + timeWords(value)
		}
		if what, is := strings.CutSuffix(p.name, "_after"); is {
			return timeNames[what] + " since " + timeWords(value)
		}
	}
	return p.name + " " + value
}

// timeWords returns a time of a parameter for people.
func timeWords(value string) string {
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return value
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}
