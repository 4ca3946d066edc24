package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
)

func TestHistory_IsBoundedAndThatOfWhatTheTokenMaySee(t *testing.T) {
	all, _ := access.NewText()
	some, _ := access.NewText()
	h := New(Options{Service: withTokens(fullService(), map[string]*access.Principal{
		all:  {Role: access.Read, Namespace: "default"},
		some: {Role: access.Read, Namespace: "default", Topics: access.Topics{"seen"}},
	}), Logger: quiet})
	ask := func(token, path string) (status int, fields []string, answer map[string]any) {
		t.Helper()
		w := call(t, h, http.MethodGet, path, "", "Authorization", "Bearer "+token)
		if w.Code == http.StatusUnprocessableEntity {
			return w.Code, problemIn(t, w).fields(), nil
		}
		return w.Code, nil, decodeResponse(t, w)
	}
	for query, field := range map[string]string{
		"?topics=a%20b": "?topics", "?topics=a,": "?topics", "?by=days": "?by", "?cursor=a": "?cursor",
		"?topics=" + strings.Repeat("a,", 100) + "a": "?topics",
	} {
		status, fields, _ := ask(all, "/v1/history"+query)
		require.Equal(t, http.StatusUnprocessableEntity, status, query)
		require.Equal(t, []string{field}, fields, query)
	}
	_, _, got := ask(all, "/v1/history?topics=seen,unknown&by=hours")
	require.Len(t, got["items"], 2)
	require.Empty(t, got["minutes"])
	require.NotEmpty(t, got["hours"])
	_, _, got = ask(all, "/v1/history?by=minutes")
	require.Empty(t, got["hours"])
	for path, status := range map[string]int{
		"/v1/history": http.StatusForbidden, "/v1/history?topics=seen": http.StatusForbidden,
		"/v1/topics/order.close/history": http.StatusForbidden, "/v1/topics/seen/history": http.StatusOK,
	} {
		got, _, _ := ask(some, path)
		require.Equal(t, status, got, path)
	}
	status, _, _ := ask(all, "/v1/topics/unknown/history")
	require.Equal(t, http.StatusNotFound, status)
}
