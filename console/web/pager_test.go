package web_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/console/web"
)

func TestVisit_SearchesLongWhenTheReaderGoesOn(t *testing.T) {
	visit := func(target string) *web.Visit {
		return &web.Visit{Request: httptest.NewRequestWithContext(t.Context(), "GET", target, nil), Base: ".."}
	}
	v := visit("/topics/a/lanes/b")
	require.Equal(t, web.SearchTime, v.SearchTime())
	link := v.PathSearch(v.Path("jobs"), "topic", "a&b", "cursor", "x")
	require.Equal(t, "../jobs?cursor=x&search=long&topic=a%26b", link)
	require.Equal(t, web.LongSearchTime, visit(link[2:]).SearchTime())
}
