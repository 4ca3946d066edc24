package notify_test

import (
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/badreceiver"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify"
	"github.com/ringback/ringback/notify/guard"
	"github.com/ringback/ringback/policy"
)

const (
	// hangLimit is for receivers that hang until any limit.
	hangLimit = 500 * time.Millisecond
	// longestLimit is for receivers that hang in a certain phase, which a slow machine must reach.
	longestLimit = time.Minute
	// answerLimit is for receivers that end an attempt, and is never reached.
	answerLimit = 2 * time.Minute
)

// wantedResult is the exact result of an attempt at a bad receiver.
type wantedResult struct {
	class  policy.ErrorClass
	status int
	body   string // what the body kept begins with
}

// wantedResults has the result of every kind.
var wantedResults = map[badreceiver.Kind]wantedResult{
	badreceiver.NeverAccepts: {class: policy.ClassTimeoutDial},
	badreceiver.Refuses:      {class: policy.ClassRefused},
	badreceiver.NeverAnswers: {class: policy.ClassTimeoutHeaders},
	badreceiver.HalfClosed:   {class: policy.ClassReset},
	badreceiver.NeverReads:   {class: policy.ClassTimeoutHeaders}, // the system takes so short a request

	badreceiver.DripsHeader: {class: policy.ClassTimeoutHeaders},
	badreceiver.DripsBody:   {class: policy.ClassTimeoutBody, status: 200, body: "x"},
	badreceiver.ReadsSlowly: {class: policy.ClassTimeoutHeaders},

	badreceiver.FullHeaderStalls: {class: policy.ClassTimeoutHeaders},
	badreceiver.FullBodyStalls:   {class: policy.ClassTimeoutBody, status: 200, body: "0123456789"},
	badreceiver.InterimStalls:    {class: policy.ClassTimeoutHeaders},
	badreceiver.ShortLines:       {class: policy.ClassTooLarge},
	badreceiver.LongLine:         {class: policy.ClassTooLarge},

	// The part that is read is a response; the rest is not read.
	badreceiver.GigabyteBody: {status: 200, body: "0123456789"},
	badreceiver.EndlessBody:  {status: 200, body: "0123456789"},
	badreceiver.GzipBomb:     {status: 200, body: "\x1f\x8b"}, // as it came: nothing is unpacked

	badreceiver.HugeHeader:     {class: policy.ClassTooLarge},
	badreceiver.EndlessInterim: {class: policy.ClassTooLarge},

	badreceiver.EndlessTrailer:   {class: policy.ClassHTTP, status: 200, body: "ok"},
	badreceiver.EndlessExtension: {class: policy.ClassHTTP, status: 200},
	badreceiver.TinyChunks:       {status: 200, body: "x"}, // MaxRead bytes of it

	badreceiver.ResetsMidAnswer: {class: policy.ClassReset, status: 200, body: "x"},
	badreceiver.ClosesMidAnswer: {class: policy.ClassReset, status: 200, body: "x"},

	badreceiver.Garbage:      {class: policy.ClassHTTP},
	badreceiver.NoHeader:     {class: policy.ClassHTTP},
	badreceiver.TwoLengths:   {class: policy.ClassHTTP},
	badreceiver.PromisesMore: {class: policy.ClassTimeoutBody, status: 200, body: "x"},
	badreceiver.SendsMore:    {status: 200, body: "ok"},
	badreceiver.ClosesAfter:  {status: 200, body: "ok"},
	badreceiver.AnswersEarly: {status: 413},
	badreceiver.StatusZero:   {class: policy.ClassHTTP},
	badreceiver.AnswersLate:  {status: 200, body: "ok"},
	badreceiver.Redirects:    {status: 302},

	badreceiver.WrongHost:        {class: policy.ClassTLSName},
	badreceiver.Expired:          {class: policy.ClassTLSExpired},
	badreceiver.UnknownAuthority: {class: policy.ClassTLSAuthority},
	badreceiver.OldTLS:           {class: policy.ClassTLSVersion},
	badreceiver.PlainHTTP:        {class: policy.ClassTLSVersion},
	badreceiver.ClosesHandshake:  {class: policy.ClassTLS},
	badreceiver.HangsHandshake:   {class: policy.ClassTimeoutTLS},
	badreceiver.BigChain:         {class: policy.ClassTLS},
	badreceiver.BigChainStalls:   {class: policy.ClassTLS},
	badreceiver.FullChainStalls:  {class: policy.ClassTimeoutHeaders},
	badreceiver.BigTicket:        {class: policy.ClassTimeoutHeaders},
	badreceiver.RecordStalls:     {class: policy.ClassTimeoutHeaders},
	badreceiver.AnswersLateTLS:   {status: 200, body: "ok"},

	// fields beyond the limit are dropped, but the header must end
	badreceiver.HTTP2ShortFields:    {class: policy.ClassTimeoutHeaders},
	badreceiver.HTTP2HeaderStalls:   {class: policy.ClassTimeoutHeaders},
	badreceiver.HTTP2HeaderBomb:     {class: policy.ClassTooLarge},
	badreceiver.HTTP2EndlessHeader:  {class: policy.ClassHTTP},
	badreceiver.HTTP2EndlessInterim: {class: policy.ClassTooLarge},
	badreceiver.HTTP2EndlessTrailer: {class: policy.ClassHTTP, status: 200, body: "ok"},
	badreceiver.HTTP2FullBodyStalls: {class: policy.ClassTimeoutBody, status: 200, body: "0123456789"},
	badreceiver.HTTP2StatusZero:     {class: policy.ClassHTTP},
	badreceiver.HTTP2NeverAnswers:   {class: policy.ClassTimeoutHeaders},
}

// limit returns the limit of the attempt.
func (o wantedResult) limit() time.Duration {
	if o.class.Timeout() {
		return hangLimit
	}
	return answerLimit
}

// check compares a result.
func (o wantedResult) check(t *testing.T, got policy.Result) {
	t.Helper()
	require.Equal(t, o.class, got.Class, got.Error)
	require.Equal(t, o.status, got.Status)
	require.Equal(t, o.class == policy.ClassNone, got.Error == "", got.Error)
	require.LessOrEqual(t, len(got.Body), job.MaxAttemptBody)
	require.True(t, strings.HasPrefix(string(got.Body), o.body), "%.20q", got.Body)
	require.Equal(t, o.body == "", len(got.Body) == 0, "%.20q", got.Body)
	require.Less(t, got.Duration, answerLimit)
}

// checkAmongOthers is check for one of many concurrent attempts. They may be so slow that they time out in another
// phase. Where connections are closed without notice, a request may be on one: it is unknown whether it was processed,
// so the attempt fails and is retried.
func (o wantedResult) checkAmongOthers(t *testing.T, kind badreceiver.Kind, got policy.Result) {
	t.Helper()
	switch {
	case kind == badreceiver.ClosesAfter && got.Class == policy.ClassReset:
		require.Zero(t, got.Status)
	case strings.HasPrefix(string(kind), "http2_") &&
		(got.Class == policy.ClassReset || got.Class == policy.ClassHTTP || got.Class.Timeout()):
		// Another request of the connection ended it, or kept it busy.
	case (kind == badreceiver.AnswersLate || kind == badreceiver.AnswersLateTLS) && got.Status == 299:
	case o.class.Timeout():
		require.True(t, got.Class.Timeout(), "%s: %s", got.Class, got.Error)
	default:
		o.check(t, got)
	}
}

// sender returns a Sender that may call badreceiver's receivers.
func sender(t *testing.T) *notify.Sender {
	t.Helper()
	s, err := notify.New(notify.Options{
		Guard: guard.New(guard.Options{AllowPrivate: true}),
		Roots: badreceiver.Roots(t),
	})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// attempt makes an attempt.
func attempt(t *testing.T, s *notify.Sender, r *badreceiver.Receiver, limit time.Duration) policy.Result {
	t.Helper()
	return attemptOf(t, s, r, limit, "a")
}

// attemptOf makes an attempt of a lane, which is a part of its job's id.
func attemptOf(
	t *testing.T, s *notify.Sender, r *badreceiver.Receiver, limit time.Duration, lane string,
) policy.Result {
	t.Helper()
	return s.Deliver(t.Context(), job.Request{
		Ref:         job.Ref{Namespace: "default", ID: "job-of-" + lane},
		Queue:       job.Queue{Namespace: "default", Topic: "order.close", Lane: lane},
		URL:         r.URL + "/hook",
		Method:      http.MethodPost,
		ContentType: "application/json",
		Body:        []byte(`{"order":4711}`),
		Attempt:     1,
		DueAt:       time.Now(),
		Timeout:     limit,
	})
}

// parallelAttempts makes concurrent attempts.
func parallelAttempts(
	t *testing.T, s *notify.Sender, r *badreceiver.Receiver, n int, limit time.Duration,
) []policy.Result {
	t.Helper()
	results := make([]policy.Result, n)
	var attempts sync.WaitGroup
	for i := range results {
		attempts.Go(func() { results[i] = attempt(t, s, r, limit) })
	}
	attempts.Wait()
	return results
}

// attemptRows makes concurrent rows of successive attempts.
func attemptRows(t *testing.T, s *notify.Sender, r *badreceiver.Receiver, rows, length int) []policy.Result {
	t.Helper()
	results := make([]policy.Result, rows*length)
	var attempts sync.WaitGroup
	for row := range rows {
		attempts.Go(func() {
			for i := range length {
				results[row*length+i] = attempt(t, s, r, answerLimit)
			}
		})
	}
	attempts.Wait()
	return results
}

func TestBadReceivers_HaveTheirResult(t *testing.T) {
	for _, kind := range badreceiver.All {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			want, known := wantedResults[kind]
			require.True(t, known)
			limit := want.limit()
			r := badreceiver.Start(t, kind)
			got := attempt(t, sender(t), r, limit)
			for got.Class != want.class && got.Class.Timeout() && limit < longestLimit { // in an earlier phase
				limit *= 4
				r = badreceiver.Start(t, kind)
				got = attempt(t, sender(t), r, limit)
			}
			want.check(t, got)
			require.LessOrEqual(t, r.Conns(), 1)
			require.LessOrEqual(t, r.Requests(), 1)
			require.Less(t, r.Sent(), int64(64<<20), "only what the system's buffers hold")
		})
	}
}

func TestBadReceivers_GoodOnesAreDelivered(t *testing.T) {
	for _, kind := range []badreceiver.Kind{badreceiver.Good, badreceiver.GoodTLS, badreceiver.GoodHTTP2} {
		wantedResult{status: 200, body: "ok"}.check(t, attempt(t, sender(t), badreceiver.Start(t, kind), answerLimit))
	}
}

func TestBadReceivers_RedirectsAreNotFollowed(t *testing.T) {
	r := badreceiver.Start(t, badreceiver.Redirects)
	s := sender(t)
	for n := 1; n <= 3; n++ {
		require.Equal(t, http.StatusFound, attempt(t, s, r, answerLimit).Status)
		require.Equal(t, n, r.Requests())
	}
}

// Kept connections may be unusable for a second attempt: the peer has closed them, or sent more than a response.
func TestBadReceivers_ParallelAttemptsKeepResponsesApart(t *testing.T) {
	var (
		abreast = testkit.Of(30, 50)
		rounds  = testkit.Of(40, 100)
	)
	for _, kind := range []badreceiver.Kind{badreceiver.Good, badreceiver.SendsMore, badreceiver.ClosesAfter} {
		t.Run(string(kind), func(t *testing.T) {
			r, s, want := badreceiver.Start(t, kind), sender(t), wantedResult{status: 200, body: "ok"}
			delivered := 0
			for _, result := range attemptRows(t, s, r, abreast, rounds) {
				want.checkAmongOthers(t, kind, result)
				if result.Class == policy.ClassNone {
					require.Equal(t, want.body, string(result.Body))
					delivered++
				}
			}
			require.Equal(t, r.Requests(), delivered,
				"each request that was heard was one attempt's, and its answer too")
			if kind != badreceiver.ClosesAfter { // requests may have been under way when their connection was closed
				require.Equal(t, abreast*rounds, delivered)
			}
			require.Greater(t, delivered, abreast*rounds/2)
			t.Logf("%d of %d delivered, over %d connections", delivered, abreast*rounds, r.Conns())
		})
	}
}

// A late response can be read as that of a later job of its lane, never of another lane.
func TestLateAnswers_StayInTheirLane(t *testing.T) {
	const lanes, rounds = 20, 20
	for _, kind := range []badreceiver.Kind{badreceiver.AnswersLate, badreceiver.AnswersLateTLS} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r, s := badreceiver.Start(t, kind), sender(t)
			var side sync.WaitGroup
			results := make([][]policy.Result, lanes)
			for n := range lanes {
				side.Go(func() {
					for range rounds {
						results[n] = append(results[n], attemptOf(t, s, r, answerLimit, strconv.Itoa(n)))
					}
				})
			}
			side.Wait()
			late := 0
			for n, of := range results {
				for _, result := range of {
					require.Empty(t, result.Error)
					if result.Status == 299 {
						require.Equal(t, "job-of-"+strconv.Itoa(n), string(result.Body))
						late++
					}
				}
			}
			require.GreaterOrEqual(t, late, lanes*rounds-r.Conns(), "connections are used again")
			require.Less(t, r.Conns(), 4*lanes)
		})
	}
}

// Over HTTP/2 each response names its request, so that lanes share connections.
func TestHTTP2_LanesShareAConnection(t *testing.T) {
	r, s := badreceiver.Start(t, badreceiver.GoodHTTP2), sender(t)
	for n := range 5 {
		wantedResult{status: 200, body: "ok"}.check(t, attemptOf(t, s, r, answerLimit, strconv.Itoa(n)))
	}
	require.Equal(t, 1, r.Conns())
}

// resources are the process's resources that an attempt could leak.
type resources struct {
	heap, goroutines, files int
	spent                   int // bytes allocated since the process began
}

func resourcesInUse(t *testing.T) resources {
	t.Helper()
	runtime.GC()
	runtime.GC() // what a pool held at the first is gone after the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := resources{heap: int(m.HeapAlloc), spent: int(m.TotalAlloc), goroutines: runtime.NumGoroutine()}
	if runtime.GOOS == "linux" {
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		u.files = len(open)
	}
	return u
}

func TestBadReceivers_LeakNoResources(t *testing.T) {
	const (
		attempts   = 50
		maxKept    = 2 << 20 // bytes that may be on the heap beyond what was before: less than MaxRead an attempt
		maxAttempt = 4 << 20 // bytes that an attempt may use up, ours and the receiver's
	)
	for _, kind := range badreceiver.All {
		if kind == badreceiver.NeverReads {
			continue // so it does not see that its connections are closed
		}
		t.Run(string(kind), func(t *testing.T) {
			r, s, want := badreceiver.Start(t, kind), sender(t), wantedResults[kind]
			before := resourcesInUse(t)
			limit := want.limit()
			if strings.HasPrefix(string(kind), "http2_") {
				limit = hangLimit
			}
			results := parallelAttempts(t, s, r, attempts, limit)
			spent := resourcesInUse(t).spent - before.spent
			require.Less(t, spent, attempts*maxAttempt)
			for _, result := range results {
				want.checkAmongOthers(t, kind, result)
			}

			var after resources
			require.Eventually(t, func() bool {
				s.Close() // again, for connections over HTTP/2 whose dial ended after the attempt for which it was made
				after = resourcesInUse(t)
				return after.goroutines <= before.goroutines+1 && // the condition's own
					after.files <= before.files && after.heap <= before.heap+maxKept
			}, 5*time.Minute, 50*time.Millisecond, "before: %+v", before)
			t.Logf("before: %+v, after: %+v, %d KiB an attempt", before, after, spent/attempts>>10)
		})
	}
}

func TestBadReceivers_DoNotDelayAGoodOne(t *testing.T) {
	const (
		rounds  = 2
		abreast = 2
		least   = 50
	)
	good, s := badreceiver.Start(t, badreceiver.Good), sender(t)
	var bad sync.WaitGroup
	over := make(chan struct{})
	for _, kind := range badreceiver.All {
		r := badreceiver.Start(t, kind)
		for range abreast {
			bad.Go(func() {
				for range rounds {
					attempt(t, s, r, hangLimit)
				}
			})
		}
	}
	go func() {
		bad.Wait()
		close(over)
	}()
	for served := 0; ; served++ {
		wantedResult{status: 200, body: "ok"}.check(t, attempt(t, s, good, answerLimit))
		select {
		case <-over:
			if served >= least {
				return
			}
		default:
		}
	}
}
