package e2e

import (
	"crypto/tls"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// situation is what somebody on call may meet in a namespace, and the first sentence of the first page then.
type situation struct {
	name     string
	topic    obj // the policy of the topic t
	jobs     []obj
	then     func(in *tenant) // after the jobs were registered; nil: nothing
	sentence string           // a pattern
}

// tenant is a namespace of a process.
type tenant struct {
	t    testing.TB
	p    *process
	name string
}

// send makes a request in the namespace.
func (n *tenant) send(method, path string, body obj) {
	n.t.Helper()
	var answer obj
	code := inNamespace(n.t, n.p, n.name, method, path, body, &answer)
	require.Less(n.t, code, 300, "%s %s: %v", method, path, answer)
}

var (
	leadOfPage = regexp.MustCompile(`(?s)<p class="lead sentence[^>]*>(.*?)</p>`)
	tag        = regexp.MustCompile(`<[^>]*>`)
)

// lead returns the first sentence of the first page.
func (n *tenant) lead() string {
	res, err := http.Get(n.p.url + "/console/@" + n.name + "/")
	require.NoError(n.t, err)
	page, err := io.ReadAll(res.Body)
	require.NoError(n.t, err)
	require.NoError(n.t, res.Body.Close())
	found := leadOfPage.FindSubmatch(page)
	require.NotNil(n.t, found, "%s", page)
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(string(found[1]), ""))), " ")
}

// jobsTo returns jobs of the topic t in a lane.
func jobsTo(n int, lane, url string) (jobs []obj) {
	for range n {
		jobs = append(jobs, obj{"topic": "t", "lane": lane, "url": url})
	}
	return jobs
}

// situations returns those whose receivers are r and others.
func situations(t *testing.T, r *receiver) []situation {
	secure := httptest.NewUnstartedServer(nil)
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(busy.Close)
	fails := func(share int, newest string) string {
		return fmt.Sprintf(`^The receiver of 1 lane fails: bad of topic t \(since [\d: -]+, %d\s?%% of its `+
			`latest attempts, newest: %s[,)]`, share, newest)
	}
	many := jobsTo(5, "bad", r.URL+"/status/500")
	for i := range 1000 {
		many = append(many, obj{"topic": "t", "lane": fmt.Sprint("good-", i), "url": r.URL + "/ok"})
	}
	refused := "http://" + closed.Addr().String()
	return []situation{
		{name: "all-500", jobs: jobsTo(5, "bad", r.URL+"/status/500"), sentence: fails(100, "answered 500")},
		{
			name: "half-500", sentence: fails(50, "answered 500"),
			jobs: append(jobsTo(4, "bad", r.URL+"/status/500"), jobsTo(4, "bad", r.URL+"/ok")...),
		},
		{
			name: "slow", topic: obj{"timeout": "200ms"}, jobs: jobsTo(5, "bad", r.URL+"/hold/1h"),
			sentence: fails(100, "[^,)]*(time|answer)[^,)]*"),
		},
		{name: "refused", jobs: jobsTo(5, "bad", refused), sentence: fails(100, "the connection was refused")},
		{name: "tls", jobs: jobsTo(5, "bad", secure.URL), sentence: fails(100, "[^,)]*(TLS|certificate)[^,)]*")},
		{
			name: "paused", topic: obj{"paused": true}, jobs: jobsTo(3, "some", r.URL+"/ok"),
			sentence: `^Topic t is paused\.`,
		},
		{
			name: "dead", topic: obj{"retries": 0},
			jobs:     append(jobsTo(1, "some", r.URL+"/status/500"), jobsTo(9, "good", r.URL+"/ok")...),
			sentence: `^1 job died in the last hour\. Callbacks flow\.$`,
		},
		{
			name: "recovered", topic: obj{"ladder": []string{"1s"}},
			jobs:     append(jobsTo(3, "some", r.URL+"/fail/1"), jobsTo(9, "some", r.URL+"/ok")...),
			sentence: `^Callbacks flow\.$`,
		},
		{
			name: "rate-limited", jobs: jobsTo(1, "bad", busy.URL),
			sentence: `^The receiver of 1 lane fails: bad of topic t \(.*newest: answered 429, asked for a pause, ` +
				`left alone until `,
		},
		{name: "one-of-1000", jobs: many, sentence: fails(100, "answered 500") + `.*Some callbacks are delivered\.$`},
		{
			name: "two-topics", sentence: `^The receivers of 2 lanes fail: bad of topic [tu] .* and bad of topic [tu] `,
			jobs: jobsTo(5, "bad", r.URL+"/status/500"),
			then: func(in *tenant) {
				for range 5 {
					in.send(http.MethodPost, "/v1/jobs", obj{"topic": "u", "lane": "bad", "url": r.URL + "/status/503"})
				}
			},
		},
	}
}

// look waits until each situation has its first sentence, by the page of front.
func look(t *testing.T, front *process, all []situation) {
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			in := &tenant{t: t, p: front, name: s.name}
			call[obj](t, front, http.MethodPut, "/v1/namespaces/"+s.name, obj{}, http.StatusOK)
			if s.topic == nil {
				s.topic = obj{}
			}
			paused := s.topic["paused"] == true
			delete(s.topic, "paused")
			in.send(http.MethodPut, "/v1/topics/t", s.topic)
			if paused {
				in.send(http.MethodPost, "/v1/topics/t/pause", obj{})
			}
			in.send(http.MethodPost, "/v1/batch", obj{"jobs": s.jobs})
			if s.then != nil {
				s.then(in)
			}
			last, pattern, began := in.lead(), regexp.MustCompile(s.sentence), time.Now()
			for ; !pattern.MatchString(last); last = in.lead() {
				require.Less(t, time.Since(began), testkit.MustCome, last)
				<-time.After(100 * time.Millisecond)
			}
			t.Log(last)
		})
	}
}

func TestNow_NamesTheFaultFirst(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		r := newReceiver(t)
		look(t, start(t, store), situations(t, r))
	})
}

func TestNow_NamesTheFaultsThatOtherProcessesMeet(t *testing.T) {
	onRedis(t, func(t *testing.T, store string) {
		r := newReceiver(t)
		front := start(t, store, "--roles=api")
		start(t, store, "--roles=worker")
		look(t, front, situations(t, r))
	})
}

func TestNow_SaysThatNoProcessDelivers(t *testing.T) {
	onRedis(t, func(t *testing.T, store string) {
		look(t, start(t, store, "--roles=api"), []situation{{
			name: "alone", jobs: jobsTo(3, "some", "http://127.0.0.1:9/"),
			sentence: `^Nothing is being delivered: the oldest due job has waited for \d+s, and no lane holds ` +
				`it back\. Perhaps no process delivers topic t\.$`,
		}})
	})
}
