package trypage

import (
	"html/template"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/internal/inbox"
	"github.com/ringback/ringback/job"
)

// Bounds of what is shown of the inbox. The bytes are those of HTML, in which a hostile text grows to five times its
// length.
const (
	shownRequests = 20
	shownHeaders  = 10   // of each request
	shownBytes    = 2048 // of the texts of each request
	shownBody     = 1024 // of them
	shownText     = 320  // of them, for each of the other texts
	shownToken    = 32   // of them, for the method and the attempt
)

// budget is how many bytes of HTML there is room for.
type budget int

// take returns as much of a text as there is room for, and at most so many bytes of HTML.
func (b *budget) take(text string, most int) string {
	text = valid(text)
	most = min(most, int(*b))
	size := 0
	for i, r := range text {
		n := len(template.HTMLEscapeString(string(r)))
		if r == '+' { // templates escape it, too
			n = len("&#43;")
		}
		if size+n > most {
			*b -= budget(size)
			return text[:i] + "…"
		}
		size += n
	}
	*b -= budget(size)
	return text
}

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
		room := budget(shownBytes)
		to := request{
			N: r.N, At: r.At, Method: room.take(r.Method, shownToken), Path: room.take(r.Path, shownText),
			ID:      room.take(r.ID, shownText),
			Attempt: room.take(r.Attempt, shownToken), Answer: r.Answer, Own: j != nil && r.ID == j.ID,
		}
		to.Pill, to.Verdict, to.Detail = signatureWords(r.Signature)
		to.Detail = room.take(to.Detail, shownText)
		to.Body = room.take(r.Body, shownBody)
		if r.BodyBytes > len(r.Body) || to.Body != valid(r.Body) {
			to.Cut = int64(r.BodyBytes)
		}
		for _, h := range r.Headers[:min(len(r.Headers), shownHeaders)] {
			value := h.Value
			if h.Name != "Webhook-Signature" && job.SecretHeader(h.Name) {
				value = form.Redacted
			}
			if room == 0 {
				break
			}
			to.Headers = append(to.Headers,
				inbox.Header{Name: room.take(h.Name, shownText), Value: room.take(value, shownText)})
		}
		to.MoreHeaders = int64(r.MoreHeaders + len(r.Headers) - len(to.Headers))
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
