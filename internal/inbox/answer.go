package inbox

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
)

const (
	flakyFailures = 2 // failed attempts of each id at /flaky
	maxDelay      = 10 * time.Minute
)

// An answer is what the inbox responds with.
type answer struct {
	status int
	delay  time.Duration
	text   string // the body
}

// answerTo returns the answer to the nth attempt of a job at a path, whose parts can be combined, as in
// /slow/2s/status/503:
//
//	/status/CODE     responds with a status, 200 to 599
//	/slow/DURATION   responds late, after 10m at most
//	/flaky           responds with 500 to the first two attempts of every job
//
// Other numbers behind status and slow are answered 400. Everything else responds with 200, also status and slow
// without a number behind them.
func answerTo(path string, n int) answer {
	to := answer{status: http.StatusOK}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		value := strings.Join(parts[min(i+1, len(parts)):min(i+2, len(parts))], "")
		numbered := strings.IndexAny(value, "-0123456789") == 0
		switch {
		case part == "flaky":
			if n <= flakyFailures {
				to.status = http.StatusInternalServerError
			}
		case part == "status" && numbered:
			code, err := strconv.Atoi(value)
			if err != nil || code < 200 || code > 599 {
				return badRequest("%q is not a status from 200 to 599: use a path such as /status/503", value)
			}
			to.status = code
		case part == "slow" && numbered:
			delay, err := time.ParseDuration(value)
			if err != nil || delay < 0 || delay > maxDelay {
				return badRequest("%q is not a duration up to 10m: use a path such as /slow/5s", value)
			}
			to.delay = delay
		}
	}
	return to
}

func badRequest(format, value string) answer {
	return answer{status: http.StatusBadRequest, text: fmt.Sprintf(format, value) + "\n"}
}

// wait waits until the answer is due, and reports whether the client still waits.
func (a answer) wait(w http.ResponseWriter, r *http.Request) bool {
	if a.delay == 0 {
		return true
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.delay + writeTimeout))
	select {
	case <-time.After(a.delay):
		return true
	case <-r.Context().Done():
		return false
	}
}

// Bounds of the headers that are printed, and those that every request has or that the first line shows.
const maxShownHeaders = 20

var commonHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Ringback-Attempt", "Ringback-Due-At",
	"User-Agent", "Webhook-Id", "Webhook-Signature", "Webhook-Timestamp",
}

// headersLine returns the headers of a request on one line, sorted, without the values of secret ones; empty if there
// are only common ones.
func headersLine(header http.Header) string {
	var all []string
	for name, values := range header {
		if !slices.Contains(commonHeaders, name) {
			value := strings.Join(values, ", ")
			if job.SecretHeader(name) {
				value = logs.SecretMark
			}
			all = append(all, Printable(name+": "+value))
		}
	}
	slices.Sort(all)
	if more := len(all) - maxShownHeaders; more > 0 {
		all = append(all[:maxShownHeaders], fmt.Sprintf("and %d more", more))
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Repeat(" ", len("15:04:05.000  inbox  ")) + strings.Join(all, "  ") + "\n"
}
