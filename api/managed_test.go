package api

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
)

// managedBodies are requests for settings with a mark, by path.
var managedBodies = map[string]string{
	"/v1/topics/a":         `{"workers": 5, "managed_by": "shop"}`,
	"/v1/topics/a/lanes/b": `{"lane_rate": "5/s", "managed_by": "shop"}`,
	"/v1/schedules/s":      `{"every": "1h", "job": {"topic": "a"}, "managed_by": "shop"}`,
}

func TestManagedBy_StaysUnlessItIsGiven(t *testing.T) {
	for path, body := range managedBodies {
		h := handlerOf(newFake())
		mark := func(method, body string) any {
			t.Helper()
			w := call(t, h, method, path, body)
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			return decodeResponse(t, w)["managed_by"]
		}
		without := strings.Replace(body, `, "managed_by": "shop"`, "", 1)
		require.Nil(t, mark(http.MethodPut, without), path)
		require.Equal(t, "shop", mark(http.MethodPut, body), path)
		require.Equal(t, "shop", mark(http.MethodPut, without), path)
		if path != "/v1/schedules/s" {
			require.Equal(t, "shop", mark(http.MethodPatch, `{}`), path)
			require.Equal(t, "github.com/acme/shop:eu-1",
				mark(http.MethodPatch, `{"managed_by": "github.com/acme/shop:eu-1"}`), path)
		}
		require.Nil(t, mark(http.MethodPut, strings.Replace(body, `"shop"`, "null", 1)), path)
		for _, bad := range []string{`""`, `"a b"`, `"é"`, `5`, `"` + strings.Repeat("x", 65) + `"`} {
			w := call(t, h, http.MethodPut, path, strings.Replace(body, `"shop"`, bad, 1))
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, bad)
			require.Equal(t, []string{"/managed_by"}, problemIn(t, w).fields(), bad)
			require.Nil(t, decodeResponse(t, call(t, h, http.MethodGet, path, ""))["managed_by"])
		}
	}
}

// A lane that files manage has settings, also if it is empty.
func TestManagedBy_AloneIsASetting(t *testing.T) {
	h := handlerOf(newFake())
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPut, "/v1/topics/a/lanes/b", `{"managed_by": "shop"}`).Code)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/v1/topics/a/lanes/b", "").Code)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodPut, "/v1/topics/a/lanes/b", `{"managed_by": null}`).Code)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/v1/topics/a/lanes/b", "").Code)
}

func TestDryRun_AnswersWithWhatWouldBeStored(t *testing.T) {
	for path, body := range managedBodies {
		f := newFake()
		h := handlerOf(f)
		w := call(t, h, http.MethodPut, path+"?dry_run=true", body)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		got := decodeResponse(t, w)
		require.Equal(t, "shop", got["managed_by"])
		require.InDelta(t, 0, got["revision"], 0)
		require.Nil(t, got["timeout"], "no defaults")
		require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, path, "").Code, "nothing is stored")

		require.Equal(t, http.StatusOK, call(t, h, http.MethodPut, path+"?dry_run=false", body).Code)
		stored := decodeResponse(t, call(t, h, http.MethodGet, path, ""))
		w = call(t, h, http.MethodPut, path+"?dry_run=true", strings.Replace(body, "shop", "mall", 1))
		require.Equal(t, "mall", decodeResponse(t, w)["managed_by"])
		require.Equal(t, stored, decodeResponse(t, call(t, h, http.MethodGet, path, "")))
		for query, code := range map[string]int{"dry_run=yes": 422, "dry_run=true&dry_run=true": 422, "dry_run=": 200} {
			require.Equal(t, code, call(t, h, http.MethodPut, path+"?"+query, body).Code, query)
		}
		w = call(t, h, http.MethodPut, path+"?dry_run=true", `{"color": "red", "job": {}}`)
		require.Contains(t, problemIn(t, w).fields(), "/color")
		w = call(t, h, http.MethodPatch, path+"?dry_run=true", `{}`)
		require.NotEqual(t, http.StatusOK, w.Code)
	}
}

// A dry run tells no more than a GET, so that a token of the role read can compare files with settings.
func TestDryRun_ShowsDefaults(t *testing.T) {
	h := handlerOf(newFake())
	for query, timeout := range map[string]any{"dry_run=true": nil, "dry_run=true&defaults=true": "10s"} {
		w := call(t, h, http.MethodPut, "/v1/topics/order?"+query, `{"workers": 3}`)
		require.Equal(t, http.StatusOK, w.Code, query)
		require.Equal(t, timeout, decodeResponse(t, w)["timeout"], query)
	}
}

func TestDryRun_NeedsTheRoleOfAGet(t *testing.T) {
	valid, _ := access.NewText()
	for path, body := range managedBodies {
		f := newFake()
		var log bytes.Buffer
		h := New(Options{
			Service: withTokens(f,
				map[string]*access.Principal{valid: {Actor: "ci", Role: access.Read, Namespace: job.DefaultNamespace}}),
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		put := func(query string) int {
			return call(t, h, http.MethodPut, path+query, body, "Authorization", "Bearer "+valid).Code
		}
		require.Equal(t, http.StatusOK, put("?dry_run=true"))
		require.NotContains(t, log.String(), "audit")
		require.Equal(t, http.StatusForbidden, put(""))
		require.Equal(t, http.StatusForbidden, put("?dry_run=false"))
		require.Empty(t, f.topics)
		require.Empty(t, f.own)
		require.Empty(t, f.scheduled)
	}
}
