package e2e

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// greedy is the namespace that does its worst. It has greedyJobs in the topic late.
const (
	greedy     = "greedy"
	greedyJobs = 60_000
)

// A neighbour makes the same request again and again, clients at a time.
type neighbour struct {
	name      string
	clients   int
	method    string
	path      string
	kind      string // the Content-Type; empty: JSON
	body      string
	unsent    bool // the body does not come
	openFiles int  // the limit of file descriptors of the process; 0: none
	hangStore bool // the namespace is on a store that answers no more
}

var neighbours = []neighbour{
	{name: "nothing"},
	{name: "2 searches", clients: 2, path: "/v1/jobs?label=no:such&limit=500&within=10s"},
	{name: "4 searches", clients: 4, path: "/v1/jobs?label=no:such&limit=500&within=10s"},
	{
		name: "8 dry runs", clients: 8, method: http.MethodPost, path: "/v1/work?within=10s",
		body: `{"action":"cancel","where":{"topic":"late","label":["no:such"]},"dry_run":true}`,
	},
	{
		name: "1,100 consumers", clients: 1100, method: http.MethodPost, path: "/v1/topics/pulled/lease",
		body: `{"wait":"30s"}`,
	},
	{
		name: "1,400 waits", clients: 1400, method: http.MethodPost, path: "/v1/jobs?wait=60s",
		body: `{"url":"https://example.com","topic":"late","delay":"1h"}`,
	},
	{
		name: "70 idle NDJSON batches", clients: 70, method: http.MethodPost, path: "/v1/batch",
		kind: "application/x-ndjson", unsent: true,
	},
	{name: "4,200 slow registrations", clients: 4200, method: http.MethodPost, path: "/v1/jobs", unsent: true},
	{name: "128 live pages", clients: 128, path: "/console/@" + greedy + "/?live=1"},
	{
		name: "280 registrations to a store that hangs", clients: 280, method: http.MethodPost, path: "/v1/jobs",
		body: `{"url":"https://example.com","delay":"1h"}`, openFiles: 1024, hangStore: true,
	},
	{
		name: "10 lists of a store that hangs", clients: 10, path: "/v1/jobs?limit=500",
		openFiles: 1024, hangStore: true,
	},
}

// BenchmarkBesideAGreedyNamespace measures the list of 20 jobs and the registrations of one namespace, 50 ms after each
// other, while another does its worst; docs/capacity.md has the figures.
//
//	go test ./e2e -run '^$' -bench BesideAGreedyNamespace -benchtime 1x -count 3
func BenchmarkBesideAGreedyNamespace(b *testing.B) {
	for _, n := range neighbours {
		b.Run(strings.ReplaceAll(n.name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				n.measure(b)
			}
		})
	}
}

// measure runs a process with the neighbour, and reports what another namespace meets.
func (n neighbour) measure(b *testing.B) {
	program, flags, settings := binary, []string(nil), obj{}
	if n.openFiles > 0 {
		program = filepath.Join(b.TempDir(), "ringback")
		require.NoError(b, os.WriteFile(program,
			fmt.Appendf(nil, "#!/bin/sh\nulimit -n %d && exec '%s' \"$@\"\n", n.openFiles, binary), 0o700))
	}
	var proxy *redistest.Proxy
	if n.hangStore {
		proxy = redistest.StartProxy(b, redistest.Start(b).Addr())
		flags, settings = append(flags, "--store=eu=redis://"+proxy.Addr()), obj{"store": "eu"}
	}
	p := startProgram(b, program, "sqlite:"+filepath.Join(b.TempDir(), "ringback.db"), flags...)
	defer p.kill()
	call[obj](b, p, http.MethodPut, "/v1/namespaces/"+greedy, settings, http.StatusOK)
	n.prepare(b, p)
	if proxy != nil {
		proxy.Stall()
	}

	ctx, stop := context.WithCancel(b.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	for range n.clients {
		clients.Go(func() { n.repeat(ctx, b, p) })
	}
	time.Sleep(2 * time.Second)
	var lists, registrations []time.Duration
	refused := 0
	for until := time.Now().Add(8 * time.Second); time.Now().Before(until); {
		for _, asked := range []struct {
			method, path string
			body         obj
			took         *[]time.Duration
		}{
			{http.MethodGet, "/v1/jobs?limit=20", nil, &lists},
			{http.MethodPost, "/v1/jobs", obj{"url": "https://example.com", "delay": "1h"}, &registrations},
		} {
			began := time.Now()
			status, _, err := send(p.url, asked.method, asked.path, asked.body)
			*asked.took = append(*asked.took, time.Since(began))
			if err != nil || status >= http.StatusBadRequest {
				refused++
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	for name, took := range map[string][]time.Duration{"list": lists, "registration": registrations} {
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds()*1000, name+"-p50-ms")
		b.ReportMetric(took[len(took)-1].Seconds()*1000, name+"-longest-ms")
	}
	b.ReportMetric(float64(refused)/float64(len(lists)+len(registrations)), "refused")
}

// prepare registers the jobs of both namespaces.
func (n neighbour) prepare(b *testing.B, p *process) {
	b.Helper()
	jobs := make([]obj, 5000)
	for i := range jobs {
		jobs[i] = obj{"url": "https://example.com", "topic": "late", "delay": "1h"}
	}
	var answer obj
	for range greedyJobs / len(jobs) * min(1, n.clients) {
		if n.hangStore {
			break // nothing is searched
		}
		status := inNamespace(b, p, greedy, http.MethodPost, "/v1/batch", obj{"jobs": jobs}, &answer)
		require.Equal(b, http.StatusOK, status)
	}
	require.Equal(b, http.StatusOK, inNamespace(b, p, greedy, http.MethodPut, "/v1/topics/pulled",
		obj{"deliver": "pull"}, &answer))
	require.Equal(b, http.StatusOK, inNamespace(b, p, "default", http.MethodPost, "/v1/batch",
		obj{"jobs": jobs[:100]}, &answer))
}

// repeat makes the neighbour's request until the context ends. After a refusal it waits a moment, as a client would.
func (n neighbour) repeat(ctx context.Context, b *testing.B, p *process) {
	b.Helper()
	for ctx.Err() == nil {
		if status := n.request(ctx, p); status == 0 || status >= http.StatusBadRequest {
			switch status {
			case 0, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusRequestTimeout:
			default:
				b.Errorf("%s: %d", n.name, status)
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// request makes one request on a new connection, and reads the answer to its end. The status is 0 without an
// answer.
func (n neighbour) request(ctx context.Context, p *process) (status int) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	length := len(n.body)
	if n.unsent {
		length = 100
	}
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nRingback-Namespace: %s\r\nContent-Type: %s\r\n"+
		"Content-Length: %d\r\n\r\n%s", cmp.Or(n.method, http.MethodGet), n.path, greedy,
		cmp.Or(n.kind, "application/json"), length, n.body)
	if err != nil {
		return 0
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body) // it ends with the context
	return resp.StatusCode
}
