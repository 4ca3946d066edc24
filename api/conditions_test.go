package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

func TestAConditionThatIsNotKeptIsRefused(t *testing.T) {
	for _, r := range new(api).routes() {
		for method := range r.methods {
			if method == http.MethodGet || r.versioned {
				continue
			}
			path := strings.NewReplacer("{topic}", "a", "{lane}", "b", "{id}", "c").Replace(r.path)
			for name, tag := range map[string]string{"If-Match": `"99"`, "If-None-Match": "*"} {
				f := newFake()
				w := call(t, handlerOf(f), method, path, `{}`, name, tag)
				require.Equal(t, http.StatusBadRequest, w.Code, "%s %s %s", method, path, name)
				require.Contains(t, problemIn(t, w).Detail, name)
				f.untouched(t)
			}
		}
	}
	f := newFake()
	f.topics["a"] = store.Topic{Name: "a", Revision: 1}
	require.Equal(t, http.StatusOK, call(t, handlerOf(f), http.MethodGet, "/v1/topics/a", "", "If-None-Match", `"1"`).Code, "nothing changes")
}
