package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	bodyBytes = 256
	// dueAt is the offset in a body of its due time: 13 digits, Unix milliseconds.
	dueAt, dueDigits = len(`{"due":`), 13
)

// body returns the body that every contestant sends: 256 bytes of JSON with the due time.
func body(due time.Time) []byte {
	text := fmt.Appendf(make([]byte, 0, bodyBytes), `{"due":%0*d,"note":"`, dueDigits, due.UnixMilli())
	for len(text) < bodyBytes-2 {
		text = append(text, 'x')
	}
	return append(text, `"}`...)
}

// lateOf returns how late a body arrived.
func lateOf(text []byte, now time.Time) (time.Duration, error) {
	if len(text) < dueAt+dueDigits {
		return 0, errors.New("the body says no due moment")
	}
	due, err := strconv.ParseInt(string(text[dueAt:dueAt+dueDigits]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read a due moment: %w", err)
	}
	return now.Sub(time.UnixMilli(due)), nil
}

// A receiver reads each request to its end, answers 200 and counts it. It notes when the last expected request arrived,
// so that nothing has to poll it.
type receiver struct {
	want    atomic.Int64
	count   atomic.Int64
	signed  atomic.Int64
	last    atomic.Int64
	reached atomic.Pointer[chan struct{}]
	timed   atomic.Bool

	mu   sync.Mutex
	late []float64 // ms; of more than lateSample, some
	seen int       // how many were late has a sample of
}

// lateSample bounds the values of lateness that are kept, which begin anew with each order that reads them.
const lateSample = 100_000

// failing is the path whose answers are 500. Its requests are not counted.
const failing = "/failing"

// answerTime is the path whose answers have the time as their body, in Unix nanoseconds.
const answerTime = "/time"

// wellDone is the short body of all others.
var wellDone = []byte("ok")

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	now := time.Now()
	if req.URL.Path == failing {
		_, _ = io.Copy(io.Discard, req.Body) // the answer is an error in any case
		http.Error(w, "as asked", http.StatusInternalServerError)
		return
	}
	if err := r.read(req.Body, now); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest) // cut off, or no body of ours: it does not count
		return
	}
	if req.Header.Get("Webhook-Signature") != "" {
		r.signed.Add(1)
	}
	w.Header()["Content-Type"] = []string{"text/plain"}
	text := wellDone
	if req.URL.Path == answerTime {
		text = strconv.AppendInt(nil, time.Now().UnixNano(), 10)
	}
	_, _ = w.Write(text) // an error means that the sender has left
	if r.count.Add(1) == r.want.Load() {
		r.last.Store(time.Now().UnixNano())
		close(*r.reached.Load())
	}
}

// read reads a request to its end, and notes its lateness if the order asks for it.
func (r *receiver) read(from io.Reader, now time.Time) error {
	if !r.timed.Load() {
		_, err := io.Copy(io.Discard, from)
		return err // sent to the peer as it is
	}
	text, err := io.ReadAll(from)
	if err != nil {
		return err // as above
	}
	late, err := lateOf(text, now)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ms := float64(late.Nanoseconds()) / 1e6
	r.seen++
	if len(r.late) < lateSample {
		r.late = append(r.late, ms)
	} else if i := rand.IntN(r.seen); i < lateSample {
		r.late[i] = ms
	}
	return nil
}

// obey serves orders: expect resets the counts, take returns the lateness of what came since, wait waits for the last
// expected request, count returns their number.
func (r *receiver) obey(ctx context.Context, o order) (answer, error) {
	switch o.Do {
	case "expect":
		done := make(chan struct{})
		r.mu.Lock()
		r.late, r.seen = nil, 0
		r.mu.Unlock()
		r.reached.Store(&done)
		r.timed.Store(o.Late)
		r.signed.Store(0)
		r.count.Store(0)
		r.want.Store(int64(o.Jobs))
		return answer{}, nil
	case "wait":
		select {
		case <-*r.reached.Load():
		case <-ctx.Done():
		case <-time.After(time.Duration(o.Seconds) * time.Second):
			return answer{}, fmt.Errorf("%d of %d requests came within %d s", r.count.Load(), r.want.Load(), o.Seconds)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return answer{Count: r.count.Load(), Last: r.last.Load(), Late: r.late}, nil
	case "take":
		r.mu.Lock()
		defer r.mu.Unlock()
		a := answer{Late: r.late}
		r.late, r.seen = nil, 0
		return a, nil
	case "count":
		return answer{Count: r.count.Load(), Signed: r.signed.Load()}, nil
	}
	return answer{}, fmt.Errorf("a receiver cannot %s", o.Do)
}

// asReceiver serves http and https (with HTTP/2) on free ports. The order "where" asks for their URLs.
func asReceiver() (func(context.Context, order) (answer, error), error) {
	r := &receiver{}
	url, err := serve(r)
	if err != nil {
		return nil, err
	}
	secure := httptest.NewUnstartedServer(r)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	return func(ctx context.Context, o order) (answer, error) {
		if o.Do == "where" {
			return answer{URL: url, SecureURL: secure.URL, Certificate: secure.Certificate().Raw}, nil
		}
		return r.obey(ctx, o)
	}, nil
}

// serve runs a plain server on a free loopback port until the program ends.
func serve(h http.Handler) (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the program
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	go func() {
		s := http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		_ = s.Serve(l) // ends with the program
	}()
	return "http://" + l.Addr().String(), nil
}
