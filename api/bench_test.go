package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// order is a typical registration.
const order = `{"id": "close-4711", "topic": "order.close", "url": "https://shop.example/hooks/close",
 "headers": {"X-Tenant": "42"}, "body": {"order": 4711, "lines": [{"sku": "A-1", "n": 2}, {"sku": "B-2", "n": 1}],
 "note": "leave it at the door, please, and ring twice"}, "delay": "30m", "retries": 9, "timeout": "10s",
 "labels": {"customer": "42"}}`

// fastService is a service whose calls return at once.
type fastService struct{ *fake }

func (s fastService) FindStore(context.Context, string) (Store, error) { return s, nil }

func (fastService) Register(_ context.Context, jobs []job.New) []store.RoutedResult {
	results := make([]store.RoutedResult, len(jobs))
	for i, n := range jobs {
		results[i] = store.RoutedResult{
			InsertResult: store.InsertResult{Outcome: store.Created, Job: job.Job{Spec: n.Spec, Progress: job.Progress{
				State: job.Scheduled, CreatedAt: epoch, DueAt: epoch.Add(n.Delay), Version: 1,
			}}},
		}
	}
	return results
}

// minimalHandler decodes and encodes the same JSON without any checks.
func minimalHandler(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var n struct {
		ID      string            `json:"id"`
		Topic   string            `json:"topic"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Body    json.RawMessage   `json:"body"`
		Delay   string            `json:"delay"`
		Retries int               `json:"retries"`
		Timeout string            `json:"timeout"`
		Labels  map[string]string `json:"labels"`
	}
	if err := json.Unmarshal(text, &n); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/v1/jobs/"+n.ID)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(struct {
		Job       any       `json:"job"`
		State     string    `json:"state"`
		CreatedAt time.Time `json:"created_at"`
	}{n, "scheduled", epoch})
}

// perSecond measures a handler without a network.
func perSecond(b *testing.B, h http.Handler) {
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/v1/jobs", bytes.NewReader([]byte(order)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(b, http.StatusCreated, w.Code)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkRegister compares a registration with minimalHandler.
func BenchmarkRegister(b *testing.B) {
	b.Run("ringback", func(b *testing.B) { perSecond(b, handlerOf(fastService{newFake()})) })
	b.Run("token", func(b *testing.B) {
		h := New(Options{
			Service: fastService{newFake()},
			Access:  AccessOptions{Tokens: []logs.Secret{"t"}, Loopback: true},
		})
		perSecond(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Host = "localhost:8080"
			r.Header.Set("Authorization", "Bearer t")
			h.ServeHTTP(w, r)
		}))
	})
	b.Run("bare", func(b *testing.B) { perSecond(b, http.HandlerFunc(minimalHandler)) })
}

// BenchmarkRegisterOverLoopback is the same over a connection.
func BenchmarkRegisterOverLoopback(b *testing.B) {
	for name, h := range map[string]http.Handler{
		"ringback": handlerOf(fastService{newFake()}), "bare": http.HandlerFunc(minimalHandler),
	} {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(h)
			defer server.Close()
			client := server.Client()
			for b.Loop() {
				resp, err := client.Post(server.URL+"/v1/jobs", "application/json", bytes.NewReader([]byte(order)))
				require.NoError(b, err)
				_, _ = io.Copy(io.Discard, resp.Body)
				require.NoError(b, resp.Body.Close())
				require.Equal(b, http.StatusCreated, resp.StatusCode)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkBatch compares the two forms of a batch of 1,000 jobs, over a connection.
func BenchmarkBatch(b *testing.B) {
	const jobs = 1000
	one := bytes.ReplaceAll([]byte(order), []byte("\n"), nil)
	all := make([][]byte, jobs)
	for i := range all {
		all[i] = one
	}
	for _, c := range []struct {
		kind string
		text []byte
	}{
		{"application/json", slices.Concat([]byte(`{"jobs": [`), bytes.Join(all, []byte(",")), []byte("]}"))},
		{request.ContentTypeNDJSON, bytes.Join(all, []byte("\n"))},
	} {
		b.Run(c.kind, func(b *testing.B) {
			server := httptest.NewServer(handlerOf(fastService{newFake()}))
			defer server.Close()
			client := server.Client()
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.Post(server.URL+"/v1/batch", c.kind, bytes.NewReader(c.text))
				require.NoError(b, err)
				text, err := io.ReadAll(resp.Body)
				require.NoError(b, err)
				require.NoError(b, resp.Body.Close())
				require.Equal(b, jobs, bytes.Count(text, []byte(`"status":201`)))
			}
			b.ReportMetric(float64(b.N*jobs)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkList measures a page of 50 jobs.
func BenchmarkList(b *testing.B) {
	f := newFake()
	for range 50 {
		f.page.Jobs = append(f.page.Jobs, job.Job{
			Spec: job.Spec{
				ID: "close-4711", Queue: job.Queue{Topic: "order.close", Lane: "shop.example:443"}, Method: "POST",
				URL: "https://shop.example/hooks/close", Header: map[string][]string{"X-Tenant": {"42"}},
				ContentType: "application/json", Labels: map[string]string{"customer": "42"},
			},
			Progress: job.Progress{State: job.Scheduled, CreatedAt: epoch, DueAt: epoch, Version: 1},
		})
	}
	h := handlerOf(f)
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/jobs", http.NoBody))
		require.Equal(b, http.StatusOK, w.Code)
	}
}
