package api

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

var quiet = slog.New(slog.DiscardHandler)

func TestStream_AnswersEachLineAsItArrives(t *testing.T) {
	f := newFake()
	server := httptest.NewServer(handlerOf(f))
	defer server.Close()
	r, w := io.Pipe()
	// The response starts before anything is sent.
	resp, err := server.Client().Post(server.URL+"/v1/batch", "application/x-ndjson; charset=utf-8", r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "application/x-ndjson", resp.Header.Get("Content-Type"))
	require.True(t, resp.Close)
	results := bufio.NewReader(resp.Body)
	for i := range 50 {
		id := strconv.Itoa(i)
		_, err := io.WriteString(w, `{"id": "`+id+"\"}\n")
		require.NoError(t, err)
		text, err := results.ReadBytes('\n')
		require.NoError(t, err)
		require.Equal(t, lineResult{Index: new(i), ID: id, State: "scheduled", Status: 201}, resultIn(t, text))
	}
	require.NoError(t, w.Close())
	rest, err := io.ReadAll(results)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, 50, f.calls)
}

func TestStream_RegistersLinesThatArriveTogetherAtOnce(t *testing.T) {
	g := &groupingService{fastService: fastService{newFake()}}
	const n = 5 * store.MaxBatch
	results := streamed(t, handlerOf(g), streamOf(n, ""))
	require.Len(t, results, n)
	for i, one := range results {
		require.Equal(t, lineResult{Index: new(i), ID: strconv.Itoa(i), State: "scheduled", Status: 201}, one)
	}
	require.Less(t, len(g.groups), 20)
	require.Equal(t, store.MaxBatch, slices.Max(g.groups))
}

func TestStream_ReportsEveryOutcomeAndRefusesInvalidLinesAlone(t *testing.T) {
	long := `{"id": "` + strings.Repeat("x", 3<<20) + `"}`
	for _, c := range []struct {
		line   string
		status int
		want   string
	}{
		{`{"id": "bad"`, 400, "line 3, column 12"},
		{`{"id": "bad"} {}`, 400, "line 3, column 15"},
		{`{"id": "b` + "\xff" + `"}`, 400, "invalid UTF-8 at line 3, column 10"},
		{"\xef\xbb\xbf\xef\xbb\xbf{}", 400, "line 3, column 1"},
		{"\xff\xfe{\x00}\x00", 400, "is in UTF-16"},
		{`{"id": "bad", "id": "bad"}`, 400, "line 3: duplicate key /id"},
		{`nonsense`, 400, "line 3, column 2"},
		{`[`, 400, "line 3, column 1"},
		{`{"id": "a.b"}`, 422, "/id"},
		{`{"jobs": []}`, 422, "/jobs"},
		{`[{"id": "bad"}]`, 422, "an array"},
		{`5`, 422, "a number"},
		{`null`, 422, "null"},
		{`{"id": "bad", "body_text": "` + strings.Repeat("x", 300<<10) + `"}`, 413, "/body_text"},
		{long, 413, "line 3 must be at most"},
	} {
		f := newFake()
		// The blank line counts as a line and has no result.
		got := streamed(t, handlerOf(f),
			"{\"id\": \"good\"}\r\n \t\r\n"+c.line+"\n\n{\"id\": \"too\"}\n{\"id\": \"good\"}")
		short := c.line[:min(len(c.line), 40)]
		require.Len(t, got, 4, short)
		require.Equal(t, lineResult{Index: new(0), ID: "good", State: "scheduled", Status: 201}, got[0], short)
		require.Equal(t, c.status, got[1].Status, short)
		require.Equal(t, new(1), got[1].Index)
		require.Contains(t, []string{"", "bad", "a.b"}, got[1].ID)
		var detail strings.Builder
		detail.WriteString(got[1].Error.Detail)
		for _, e := range got[1].Error.Errors {
			detail.WriteString(e.Field + " " + e.Detail)
		}
		require.Contains(t, detail.String(), c.want)
		require.Equal(t, []lineResult{
			{Index: new(2), ID: "too", State: "scheduled", Status: 201},
			{Index: new(3), ID: "good", State: "scheduled", Status: 200},
		}, got[2:], short)
		require.Len(t, f.jobs, 2, short)
	}
}

func TestStream_WithoutJobsHasNoResults(t *testing.T) {
	for _, body := range []string{"\n", "\n\r\n  \n"} {
		f := newFake()
		require.Empty(t, streamed(t, handlerOf(f), body))
		f.requireUnchanged(t)
	}
	w := call(t, handlerOf(newFake()), http.MethodPost, "/v1/batch", "", "Content-Type", request.ContentTypeNDJSON)
	require.Equal(t, http.StatusOK, w.Code)
	require.Empty(t, w.Body.String())
}

func TestStream_AnswersLikeABatch(t *testing.T) {
	f, g := newFake(), newFake()
	for _, service := range []*fake{f, g} {
		service.register = func(n job.New) store.RoutedResult {
			routed := store.RoutedResult{InsertResult: store.InsertResult{Job: job.Job{Spec: n.Spec}}}
			switch n.ID {
			case "new":
				routed.Outcome, routed.Job.State = store.Created, job.Scheduled
				routed.Job.Durability = &job.Durability{Replicas: 2}
			case "old":
				routed.Outcome, routed.Job.State = store.Existing, job.Dead
				routed.Job.Durability = &job.Durability{Synced: true}
			case "other":
				routed.Outcome, routed.Err = store.Conflict, &job.TakenError{ID: "other"}
				routed.Job.Durability = &job.Durability{Synced: true}
			case "down":
				routed = store.RoutedResult{Err: store.ErrUnavailable}
			}
			return routed
		}
	}
	jobs := []string{`{"id": "new"}`, `{"id": "old"}`, `{"id": "other"}`, `{"id": "down"}`, `{"id": "a.b"}`, `5`}
	whole := call(t, handlerOf(f), http.MethodPost, "/v1/batch", `{"jobs": [`+strings.Join(jobs, ",")+`]}`)
	lines := call(t, handlerOf(g), http.MethodPost, "/v1/batch", strings.Join(jobs, "\n"), "Content-Type",
		request.ContentTypeNDJSON)
	require.Equal(t, whole.Body.String(),
		`{"results":[`+strings.ReplaceAll(strings.TrimSpace(lines.Body.String()), "\n", ",")+"]}\n")
	require.Len(t, resultsIn(t, lines.Body.Bytes()), 6)
	require.Contains(t, lines.Body.String(), `{"index":0,"id":"new","status":201,"state":"scheduled",`+
		`"durability":{"replicas":2,"synced":false},"error":null}`+"\n")
	require.Equal(t, 2, strings.Count(lines.Body.String(), `"durability":{`), "a job that is refused has none")
}

func TestStream_RetriesAFailedStoreAfterASecond(t *testing.T) {
	f := newFake()
	fails := func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err = err
	}
	calls := 0
	serveInSynctest(t, handlerOf(f), func(t *testing.T, _ *http.Server, conn net.Conn, _ <-chan struct{}) {
		s := begin(t, conn)
		s.answer()
		sends := func(id string, status, asked int) {
			t.Helper()
			require.NoError(t, s.send("{\"id\": \""+id+"\"}\n5\n{\"id\": \""+id+"2\"}\n"))
			require.Equal(t, []int{status, 422, status},
				[]int{s.result().Status, s.result().Status, s.result().Status}, id)
			calls += asked
			require.Equal(t, calls, f.calls, id)
		}
		sends("a", 201, 1)
		fails(store.ErrUnavailable)
		sends("b", 503, 1)
		fails(nil)
		for range 2 {
			sends("c", 503, 0)
		}
		time.Sleep(time.Second - 1) // a bubble's time
		sends("d", 503, 0)
		time.Sleep(time.Nanosecond)
		fails(store.ErrUnavailable)
		sends("e", 503, 1)
		fails(nil)
		time.Sleep(time.Second - 1)
		sends("f", 503, 0) // each failure starts a new pause
		time.Sleep(time.Nanosecond)
		for _, id := range []string{"g", "h", "i"} {
			sends(id, 201, 1)
		}
		require.NoError(t, s.send(""))
		require.Empty(t, s.rest())
	})
	require.Len(t, f.jobs, 8)
}

func TestStream_HasAtMostTenThousandJobs(t *testing.T) {
	f := newFake()
	conn := dial(t, handlerOf(f))
	require.NoError(t, conn.SetDeadline(time.Now().Add(testkit.MustCome)))
	s := begin(t, conn)
	require.NoError(t, s.send("\n"+streamOf(request.MaxBatchJobs+100, "")))
	s.answer()
	results := s.rest()
	require.Len(t, results, request.MaxBatchJobs+1)
	last := results[request.MaxBatchJobs]
	require.Equal(t, 413, last.Status)
	require.Contains(t, last.Error.Detail, "line 10002 ")
	require.Equal(t, 201, results[request.MaxBatchJobs-1].Status)
	require.Len(t, f.jobs, request.MaxBatchJobs)
	_, err := s.in.ReadByte()
	require.Equal(t, io.EOF, err, "the connection is closed")
}

func TestStream_AcceptsAllJobsBeforeResultsAreRead(t *testing.T) {
	conn := dial(t, handlerOf(fastService{newFake()}))
	require.NoError(t, conn.SetDeadline(time.Now().Add(testkit.MustCome)))
	s := begin(t, conn)
	require.NoError(t, s.send("\n")) // lines without a job do not count
	sent := 0
	for i := range request.MaxBatchJobs / 100 {
		var b strings.Builder
		for j := range 100 {
			b.WriteString(`{"id": "` + strings.Repeat("x", 59) + strconv.Itoa(10_000+100*i+j) + "\"}\n")
		}
		require.NoError(t, s.send(b.String()))
		sent += 100
	}
	require.NoError(t, s.send("\n\n"))
	require.NoError(t, s.send(""))
	s.answer()
	results := s.rest()
	require.Len(t, results, sent)
	for i, one := range results {
		require.Equal(t, 201, one.Status)
		require.Equal(t, strconv.Itoa(10_000+i), one.ID[59:])
	}
}

func TestStream_DoesNotRegisterATruncatedLine(t *testing.T) {
	for name, request := range map[string]string{
		"length": "Content-Length: 1000\r\n\r\n{\"id\": \"a\"}\n{\"id\": \"b\"}",
		"chunk":  "Transfer-Encoding: chunked\r\n\r\n100\r\n{\"id\": \"a\"}\n{\"id\": \"b\"}",
		"chunks": "Transfer-Encoding: chunked\r\n\r\n18\r\n{\"id\": \"a\"}\n{\"id\": \"b\"}\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			h := watch(handlerOf(f))
			conn := dial(t, h)
			require.NoError(t, conn.SetDeadline(time.Now().Add(testkit.MustCome)))
			_, err := io.WriteString(conn,
				"POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"+request)
			require.NoError(t, err)
			half, _ := conn.(interface{ CloseWrite() error })
			require.NoError(t, half.CloseWrite())
			s := &streamClient{t: t, conn: conn, in: bufio.NewReader(conn)}
			s.answer()
			results := s.rest()
			require.Len(t, results, 2)
			require.Equal(t, lineResult{Index: new(0), ID: "a", State: "scheduled", Status: 201}, results[0])
			require.Equal(t, 400, results[1].Status)
			require.Contains(t, results[1].Error.Detail, "within line 2")
			<-h.returned
			require.Len(t, f.jobs, 1)
			require.NoError(t, conn.Close())
		})
	}
}

func TestStream_KeepsRegisteredJobsWhenTheClientDisconnects(t *testing.T) {
	f := newFake()
	h := watch(handlerOf(f))
	conn := dial(t, h)
	s := begin(t, conn)
	s.answer()
	require.NoError(t, s.send("{\"id\": \"a\"}\n{\"id\": \"b\"}\n"))
	require.Equal(t, "a", s.result().ID)
	require.Equal(t, "b", s.result().ID)
	require.NoError(t, s.send(`{"id": "c"}`))
	require.NoError(t, conn.Close())
	select {
	case <-h.returned:
	case <-time.After(testkit.MustCome):
		t.Fatal("the handler goes on without a client")
	}
	require.ElementsMatch(t, []string{"a", "b"}, sortedKeys(f.jobs))
}

func TestStream_Answers100ContinueToHTTP11(t *testing.T) {
	s := begin(t, dial(t, handlerOf(newFake())), "Expect: 100-continue")
	require.NoError(t, s.conn.SetDeadline(time.Now().Add(testkit.MustCome)))
	first, err := s.in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", first)
	_, err = s.in.ReadString('\n')
	require.NoError(t, err)
	s.answer()
	require.NoError(t, s.send(`{"id": "a"}`))
	require.NoError(t, s.send(""))
	require.Equal(t, []lineResult{{Index: new(0), ID: "a", State: "scheduled", Status: 201}}, s.rest())
}

func TestStream_DoesNotAnswer100ContinueToHTTP10(t *testing.T) {
	conn := dial(t, handlerOf(newFake()))
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(testkit.MustCome)))
	_, err := io.WriteString(conn, "POST /v1/batch HTTP/1.0\r\nHost: localhost\r\nContent-Type: "+
		"application/x-ndjson\r\n"+
		"Expect: 100-continue\r\nContent-Length: 11\r\n\r\n{\"id\": \"a\"}")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(answer), "HTTP/1.0 200 OK\r\n"), "%s", answer)
	require.True(t, strings.HasSuffix(string(answer), "\r\n\r\n{\"index\":0,\"id\":\"a\",\"status\":201,"+
		"\"state\":\"scheduled\",\"durability\":null,\"error\":null}\n"), "%s", answer)
}

func TestStream_BoundsStreamsInFlight(t *testing.T) {
	h := &observedHandler{handlerOf(newFake()), make(chan struct{}, 2*capacity.Streams.Share())}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	open := func() *streamClient {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(testkit.MustCome)))
		return begin(t, conn)
	}
	streams := make([]*streamClient, capacity.Streams.Share())
	for i := range streams {
		streams[i] = open()
		streams[i].answer()
	}
	for range 2 {
		s := open()
		resp, err := http.ReadResponse(s.in, &http.Request{Method: http.MethodPost})
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		require.Equal(t, "1", resp.Header.Get("Retry-After"))
		require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
		require.True(t, resp.Close)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(text), "its share of 48")
		require.NoError(t, s.conn.Close())
		<-h.returned
	}
	resp, err := http.Post(server.URL+"/v1/batch", "application/json", strings.NewReader(`{"jobs": []}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, "no stream")
	<-h.returned
	http.DefaultClient.CloseIdleConnections()

	require.NoError(t, streams[7].send("{}\n"))
	require.NoError(t, streams[7].send(""))
	require.Len(t, streams[7].rest(), 1)
	<-h.returned
	open().answer()
}

func TestStream_SkipsAByteOrderMarkOfALine(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	got := streamed(t, handlerOf(newFake()), mark+"{\"id\": \"a\"}\r\n"+mark+"{\"id\": \"b\"}\r\n")
	require.Len(t, got, 2)
	for i, id := range []string{"a", "b"} {
		require.Equal(t, lineResult{Index: new(i), ID: id, State: "scheduled", Status: 201}, got[i])
	}
}
