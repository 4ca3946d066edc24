package api

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// FuzzRegister sends whatever: it is taken, or refused with a 4xx and nothing stored, and a job that is taken has the
// body that encoding/json reads too.
func FuzzRegister(f *testing.F) {
	f.Add(order)
	for _, c := range badJobs {
		if len(c.body) < 1<<10 {
			f.Add(c.body)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		service := newFake()
		w := call(t, handlerOf(service), http.MethodPost, "/v1/jobs", body, "Content-Type", "application/json")
		require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
		if w.Code != http.StatusCreated {
			require.Contains(t, []int{400, 413, 422}, w.Code, w.Body.String())
			service.untouched(t)
			return
		}
		require.True(t, json.Valid([]byte(body)))
		n := service.news[0]
		require.Empty(t, job.Validate(n, epoch.AddDate(-1, 0, 0)))
		var sent struct {
			Body json.RawMessage `json:"body"`
			ID   *string         `json:"id"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &sent))
		if n.BodyKind == job.BodyJSON {
			require.Equal(t, string(sent.Body), string(n.Body))
		}
		if sent.ID != nil {
			require.Equal(t, *sent.ID, n.ID)
		}
	})
}

// FuzzBatch sends whatever as a batch: it never fails as a whole once it could be read, and answers a result a job.
func FuzzBatch(f *testing.F) {
	f.Add(`{"jobs": [{"id": "a"}, {"id": "a.b"}, 5, null, {"id": "c", "id": "c"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		w := call(t, handlerOf(newFake()), http.MethodPost, "/v1/batch", body, "Content-Type", "application/json")
		require.Less(t, w.Code, 500)
		if w.Code != http.StatusOK {
			return
		}
		var sent struct {
			Jobs []json.RawMessage `json:"jobs"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &sent))
		results, _ := answered(t, w)["results"].([]any)
		require.Len(t, results, len(sent.Jobs))
	})
}

// FuzzPolicy puts and patches whatever.
func FuzzPolicy(f *testing.F) {
	f.Add(`{"ladder": ["15s"], "headers": {"X-A": null}, "keep_dead": {"max_bytes": "1GiB"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, method := range []string{http.MethodPut, http.MethodPatch} {
			service := newFake()
			service.topics["a"] = store.Topic{Name: "a", Revision: 1}
			w := call(t, handlerOf(service), method, "/v1/topics/a", body, "Content-Type", "application/json")
			require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
			if w.Code != http.StatusOK {
				require.Contains(t, []int{400, 413, 422}, w.Code, w.Body.String())
				continue
			}
			require.Empty(t, job.ValidateTopic(service.topics["a"].Policy))
		}
	})
}

// FuzzAddress asks for whatever address, with whatever If-Match.
func FuzzAddress(f *testing.F) {
	f.Add("/v1/jobs", "topic=a&state=dead&limit=5", `"3"`)
	f.Add("/v1/jobs/a", "", "")
	f.Add("/v1/topics/a/stats", "after=b", "")
	f.Fuzz(func(t *testing.T, path, query, match string) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			r := httptest.NewRequest(method, "/", nil)
			r.URL.Path, r.URL.RawQuery = path, query
			r.Header.Set("If-Match", match)
			w := httptest.NewRecorder()
			handlerOf(newFake()).ServeHTTP(w, r)
			require.Less(t, w.Code, 500)
		}
	})
}

// FuzzLines compares the reader of lines with one that has everything at once.
func FuzzLines(f *testing.F) {
	f.Add("a\n\n b\r\n0123456789\n01234567890\nc", 3, 2, true)
	f.Add("a\nb", 1, 1, false)
	f.Fuzz(func(t *testing.T, text string, size, most int, whole bool) {
		const longest = 10
		var want []line
		all := strings.Split(text, "\n")
		for i, one := range all {
			trimmed := strings.Trim(one, " \t\r")
			last := i == len(all)-1
			switch {
			case len(one) > longest:
				want = append(want, line{n: i + 1, long: true})
			case last && !whole, trimmed == "":
			default:
				want = append(want, line{n: i + 1, text: []byte(trimmed)})
			}
		}
		end := io.EOF
		if !whole {
			end = io.ErrUnexpectedEOF
		}
		l := lines{from: &inPieces{text, max(size, 1), end}, longest: longest}
		got, err := allLines(&l, max(most, 1))
		require.Equal(t, end, err)
		require.Equal(t, want, got)
	})
}

// FuzzStream sends whatever as NDJSON: each line that is not blank gets a result, and only what is taken is stored.
func FuzzStream(f *testing.F) {
	f.Add("{\"id\": \"a\"}\n\n{\"id\": \"a.b\"}\n5\n{\"id\": \"c\", \"id\": \"c\"}\n{\"id\": \"d\"}", 7)
	f.Fuzz(func(t *testing.T, body string, size int) {
		service := newFake()
		r := httptest.NewRequest(http.MethodPost, "/v1/batch", &inPieces{body, max(size, 1), io.EOF})
		r.Header.Set("Content-Type", contentNDJSON)
		w := httptest.NewRecorder()
		handlerOf(service).ServeHTTP(w, r)
		sent, taken := 0, 0
		for one := range strings.SplitSeq(body, "\n") {
			if strings.Trim(one, " \t\r") != "" {
				sent++
			}
		}
		results := resultsIn(t, w.Body.Bytes())
		require.Len(t, results, sent)
		for _, one := range results {
			if one.Error == nil {
				taken++
			}
		}
		require.Len(t, service.news, taken)
	})
}
