package notify

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// signer returns a readable signature with its arguments.
type signer struct {
	mu sync.Mutex
	at []time.Time
}

func (s *signer) Sign(id string, at time.Time, body []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, at)
	return signature(id, strconv.FormatInt(at.Unix(), 10), body)
}

func signature(id, at string, body []byte) string { return fmt.Sprintf("v1,%s.%s.%x", id, at, body) }

func TestSign_SignsAttempts(t *testing.T) {
	server, got := recordingServer(t, (*httptest.Server).Start)
	s := newSender(t, Options{})
	for _, test := range []struct {
		method string
		body   []byte
	}{
		{"POST", []byte("{\"order\":\t4711, \"x\": \"\xff\" }\n")},
		{"POST", nil},
		{"PUT", []byte{0}},
		{"GET", nil},
		{"DELETE", nil},
	} {
		req := newRequest(server.URL)
		req.Method, req.Body, req.Signer = test.method, test.body, new(signer)
		req.Header = map[string][]string{"Webhook-Signature": {"forged"}}
		require.Equal(t, 200, s.Deliver(t.Context(), req).Status)
		r := <-got
		require.Equal(t, test.body, append([]byte(nil), r.body...))
		require.Equal(t, []string{signature("job-1", r.Header.Get("webhook-timestamp"), test.body)},
			r.Header["Webhook-Signature"])
		require.WithinDuration(t, time.Now(), req.Signer.(*signer).at[0], time.Minute)
	}
	require.Equal(t, 200, s.Deliver(t.Context(), newRequest(server.URL)).Status)
	require.NotContains(t, (<-got).Header, "Webhook-Signature", "without a signer there is none")
}

func TestSign_UnsendableSignatureIsInvalid(t *testing.T) {
	req := newRequest("http://127.0.0.1:1/")
	req.Signer = badSigner{}
	result := newSender(t, Options{}).Deliver(t.Context(), req)
	require.Equal(t, policy.ClassInvalid, result.Class, result.Error)
	require.NotContains(t, result.Error, "topsecret")
}

type badSigner struct{}

func (badSigner) Sign(string, time.Time, []byte) string { return "topsecret\r\nX: y" }

// A request that is sent again is signed again, with the new time.
func TestSign_SignsResentRequestsAgain(t *testing.T) {
	const dead = 2 // connections that die before a byte is written: the attempt's first one, and the next
	var waiting sync.WaitGroup
	waiting.Add(dead)
	first := true
	var mu sync.Mutex
	got := make(chan receivedRequest, 16)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		opening := first
		mu.Unlock()
		if opening { // so that each opens a connection
			waiting.Done()
			waiting.Wait()
		}
		got <- receivedRequest{r, body}
	}))
	t.Cleanup(server.Close)
	b := newBreaker(0)
	s := newSender(t, Options{Dial: b.dial})
	for _, result := range concurrentAttempts(t, s, server.URL, dead) {
		require.Equal(t, 200, result.Status, result.Error)
		<-got
	}
	mu.Lock()
	first = false
	mu.Unlock()
	b.breakOpen()

	signs := new(signer)
	req := newRequest(server.URL)
	req.Signer = signs
	result := s.Deliver(t.Context(), req)
	require.Equal(t, 200, result.Status, result.Error)
	r := <-got
	require.Equal(t, signature("job-1", r.Header.Get("webhook-timestamp"), req.Body), r.Header.Get("webhook-signature"))
	require.Len(t, signs.at, dead+1, "one signature each time that it is sent")
	for i := range signs.at[1:] {
		require.True(t, signs.at[i+1].After(signs.at[i]))
	}
	require.Equal(t, strconv.FormatInt(signs.at[dead].Unix(), 10), r.Header.Get("webhook-timestamp"))
}

// Unsigned requests do not pay for signing.
func TestSign_UnsignedRequestsAllocateNoMore(t *testing.T) {
	s := newSender(t, Options{})
	plain := newRequest("http://127.0.0.1:1/hooks")
	signed := plain
	signed.Signer = quickSigner{}
	count := func(req job.Request) float64 {
		return testing.AllocsPerRun(200, func() {
			_, _ = s.header(time.Now(), req)
		})
	}
	unsigned := count(plain)
	require.LessOrEqual(t, unsigned, 7.0, "the map, the array of values, and the numbers in it")
	require.LessOrEqual(t, count(signed), unsigned+1, "the list of the signature")
}

type quickSigner struct{}

func (quickSigner) Sign(string, time.Time, []byte) string { return "v1,x" }
