package trypage

import (
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/inbox"
	"github.com/ringback/ringback/job"
)

// shownRequests bounds the requests of the inbox that are shown.
const shownRequests = 20

// request is a request of the inbox in words. All its texts are the sender's.
type request struct {
	N                         int64
	At                        time.Time
	Method, Path, ID, Attempt string
	Answer                    string
	Pill, Verdict, Detail     string // of the signature
	Body                      string
	Cut                       int64 // bytes of the whole body if it is not all here; zero: it is
	Headers                   []inbox.Header
	MoreHeaders               int64
	Own                       bool // it is of the job that the page shows
}

// requestsOf returns the newest requests in words.
func requestsOf(all []inbox.Request, j *client.JobInfo) []request {
	shown := make([]request, 0, shownRequests)
	for _, r := range all[:min(len(all), shownRequests)] {
		to := request{
			N: r.N, At: r.At, Method: valid(r.Method), Path: valid(r.Path), ID: valid(r.ID), Attempt: valid(r.Attempt), Answer: r.Answer, Body: valid(r.Body),
			MoreHeaders: int64(r.MoreHeaders), Own: j != nil && r.ID == j.ID,
		}
		if r.BodyBytes > len(r.Body) {
			to.Cut = int64(r.BodyBytes)
		}
		to.Pill, to.Verdict, to.Detail = signatureWords(r.Signature)
		for _, h := range r.Headers {
			value := valid(h.Value)
			if h.Name != "Webhook-Signature" && job.SecretHeader(h.Name) {
				value = redacted
			}
			to.Headers = append(to.Headers, inbox.Header{Name: valid(h.Name), Value: value})
		}
		shown = append(shown, to)
	}
	return shown
}

// signatureWords says what came of verifying a signature.
func signatureWords(s inbox.Signature) (pill, verdict, detail string) {
	switch s.Verdict {
	case inbox.Verified:
		if strings.HasPrefix(s.Key, "whpk_") {
			return "ok", "signature verified", "with the public key " + s.Key
		}
		return "ok", "signature verified", "with the secret " + s.Key
	case inbox.Wrong:
		return "bad", "signature does not verify", valid(s.Detail)
	case inbox.Unchecked:
		return "plain", "signed", "the inbox has no keys, so it was not verified"
	case inbox.Unreadable:
		return "warn", "signature not verified", valid(s.Detail)
	default:
		return "plain", "not signed", ""
	}
}

// valid returns a text as UTF-8: what a sender sent may be anything.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
