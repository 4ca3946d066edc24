package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
			require.Equal(t, "github.com/acme/shop:eu-1", mark(http.MethodPatch, `{"managed_by": "github.com/acme/shop:eu-1"}`), path)
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
