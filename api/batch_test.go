package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// batchOf returns a batch of n jobs with the ids 0, 1, ….
func batchOf(n int) string {
	jobs := make([]string, n)
	for i := range jobs {
		jobs[i] = `{"id": "` + strconv.Itoa(i) + `"}`
	}
	return `{"jobs": [` + strings.Join(jobs, ", ") + `]}`
}

// statuses returns the statuses and ids of a batch's results.
func statuses(t *testing.T, got map[string]any) (all []int, ids []string) {
	t.Helper()
	results, ok := got["results"].([]any)
	require.True(t, ok)
	for _, r := range results {
		result, _ := r.(map[string]any)
		status, _ := result["status"].(float64)
		id, _ := result["id"].(string)
		all, ids = append(all, int(status)), append(ids, id)
	}
	return all, ids
}

func TestBatch_RegistersInPartsAndAnswersInOrder(t *testing.T) {
	f := newFake()
	w := call(t, handlerOf(f), http.MethodPost, "/v1/batch", batchOf(2*store.MaxBatch+1))
	require.Equal(t, http.StatusOK, w.Code)
	all, ids := statuses(t, decodeResponse(t, w))
	require.Len(t, all, 2*store.MaxBatch+1)
	for i := range all {
		require.Equal(t, http.StatusCreated, all[i])
		require.Equal(t, strconv.Itoa(i), ids[i])
	}
	require.Equal(t, 3, f.calls)
}

func TestBatch_ReportsEveryOutcome(t *testing.T) {
	f := newFake()
	f.register = func(n job.New) store.RoutedResult {
		routed := store.RoutedResult{InsertResult: store.InsertResult{Job: job.Job{Spec: n.Spec}}}
		switch n.ID {
		case "new":
			routed.Outcome = store.Created
		case "old":
			routed.Outcome, routed.Job.State = store.Existing, job.Dead
		case "other":
			routed.Outcome, routed.Err = store.Conflict, &job.TakenError{ID: "other"}
		case "down":
			routed = store.RoutedResult{Err: store.ErrUnavailable}
		case "many":
			routed = store.RoutedResult{Err: &job.QuotaError{RetryAfter: 1500 * time.Millisecond}}
		}
		return routed
	}
	w := call(t, handlerOf(f), http.MethodPost, "/v1/batch",
		`{"jobs": [{"id": "new"}, {"id": "old"}, {"id": "other"}, {"id": "down"}, {"id": "many"}, {"id": "a.b"}, 5, `+
			`{"id": "new"}]}`)
	all, _ := statuses(t, decodeResponse(t, w))
	require.Equal(t, []int{201, 200, 409, 503, 429, 422, 422, 201}, all)
	var waits []string
	for _, found := range regexp.MustCompile(`"retry_after_ms":(\w+)`).FindAllStringSubmatch(w.Body.String(), -1) {
		waits = append(waits, found[1])
	}
	require.Equal(t, []string{"null", "1000", "1500", "null", "null"}, waits)
	require.Contains(t, w.Body.String(), `"id":"old","status":200,"state":"dead",`)
	require.Contains(t, w.Body.String(), `"id":"other","status":409,"state":null,`)
}

func TestJSON_MayBeginWithAByteOrderMark(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	for target, body := range map[string]string{
		"POST /v1/jobs": `{"url": "http://a.example/"}`, "POST /v1/batch": `{"jobs": [{"url": "http://a.example/"}]}`,
		"PUT /v1/topics/a": `{"workers": 5}`, "POST /v1/topics/a/pause": `{"note": "n"}`,
		"POST /v1/topics/a/resume": "",
	} {
		method, path, _ := strings.Cut(target, " ")
		require.Less(t, call(t, handlerOf(storedSettings()), method, path, mark+body).Code, 300, target)
		w := call(t, handlerOf(storedSettings()), method, path, "\xff\xfe{\x00}\x00")
		require.Contains(t, []int{400, 422}, w.Code, target)
		if w.Code == 400 {
			require.Equal(t, "the text is in UTF-16: save or send it as UTF-8", problemIn(t, w).Detail)
		}
	}
}

func TestBatch_DoesNotTryTheRestAfterTheStoreFailed(t *testing.T) {
	f := newFake()
	failing := &failingAfter{fake: f, left: 1}
	var w *httptest.ResponseRecorder
	synctest.Test(t, func(t *testing.T) { // where no time passes
		w = call(t, handlerOf(failing), http.MethodPost, "/v1/batch", batchOf(4*store.MaxBatch))
	})
	require.Equal(t, http.StatusOK, w.Code)
	all, _ := statuses(t, decodeResponse(t, w))
	for i, status := range all {
		want := http.StatusServiceUnavailable
		if i < store.MaxBatch {
			want = http.StatusCreated
		}
		require.Equal(t, want, status, i)
	}
	require.Equal(t, 2, f.calls, "one part went well, one failed, two were not tried")
}

func TestBatch_SendsALargeAnswerInPieces(t *testing.T) {
	bad := `{"x": 1, "id": "a.b"}`
	server := httptest.NewServer(handlerOf(newFake()))
	defer server.Close()
	jobs := `{"jobs": [` + strings.Repeat(bad+",", 3*store.MaxBatch) + `{"id": "last"}]}`
	resp, err := server.Client().Post(server.URL+"/v1/batch", "application/json", strings.NewReader(jobs))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	require.Negative(t, resp.ContentLength, "its length is not known beforehand")
	var got map[string]any
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&got))
	all, ids := statuses(t, got)
	require.Len(t, all, 3*store.MaxBatch+1)
	require.Equal(t, http.StatusUnprocessableEntity, all[store.MaxBatch])
	require.Equal(t, "last", ids[3*store.MaxBatch])
}

func TestBatch_RefusesInvalidRequests(t *testing.T) {
	for body, fields := range map[string][]string{
		`{}`:                        {"/jobs"},
		`{"jobs": {}}`:              {"/jobs"},
		`{"jobs": null}`:            {"/jobs"},
		`{"jobs": [], "dry": true}`: {"/dry"},
		`[]`:                        {""},
	} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPost, "/v1/batch", body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, body)
		require.Equal(t, fields, problemIn(t, w).fields(), body)
		f.requireUnchanged(t)
	}
	f := newFake()
	w := call(t, handlerOf(f), http.MethodPost, "/v1/batch", batchOf(request.MaxBatchJobs+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.Equal(t, []string{"/jobs"}, problemIn(t, w).fields())
	f.requireUnchanged(t)
	require.Equal(t, http.StatusOK,
		call(t, handlerOf(f), http.MethodPost, "/v1/batch", batchOf(request.MaxBatchJobs)).Code)
	require.JSONEq(t, `{"results": []}`,
		call(t, handlerOf(f), http.MethodPost, "/v1/batch", `{"jobs": []}`).Body.String())
}
