package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

func TestConditions_RefusesUnsupportedOnes(t *testing.T) {
	conditions := map[string]string{"If-Match": `"99"`, "If-None-Match": "*", "If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT"}
	for _, r := range new(api).routes() {
		for method := range r.methods {
			if method == http.MethodGet {
				continue
			}
			path := strings.NewReplacer("{topic}", "a", "{lane}", "b", "{id}", "c").Replace(r.path)
			for name, tag := range conditions {
				if r.versioned && name == "If-Match" {
					continue
				}
				f := newFake()
				f.jobs["c"] = job.Job{Progress: job.Progress{State: job.Scheduled, Version: 1}}
				w := call(t, handlerOf(f), method, path, `{}`, name, tag)
				require.Equal(t, http.StatusBadRequest, w.Code, "%s %s %s", method, path, name)
				require.Contains(t, problemIn(t, w).Detail, name)
				f.requireUnchanged(t)
				require.EqualValues(t, 1, f.jobs["c"].Version)
				require.Equal(t, job.Scheduled, f.jobs["c"].State)
			}
		}
	}
	f := newFake()
	f.topics["a"] = store.Topic{Name: "a", Revision: 1}
	require.Equal(t, http.StatusOK, call(t, handlerOf(f), http.MethodGet, "/v1/topics/a", "", "If-None-Match", `"1"`).Code, "nothing changes")
}
