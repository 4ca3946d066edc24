package notify

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// maxValue bounds one header value, in bytes, when the whole header is too long.
const maxValue = 256

// buffers are for bytes that are read and dropped.
var buffers = sync.Pool{New: func() any { return new([8 << 10]byte) }}

// read converts a response to a result with the first keep bytes of its body; zero: job.MaxAttemptBody. The whole body,
// or its first MaxRead bytes, must arrive within the attempt's limit: a truncated response is an error, even with
// status 200.
//
// RFC 9110 §15 defines statuses from 100 to 599; those up to 999 are failures, which policy retries.
func (a *attempt) read(resp *http.Response, keep int) policy.Result {
	if resp.StatusCode < 100 || resp.StatusCode > 999 {
		return policy.Result{Class: policy.ClassHTTP, Error: policy.OneLine(fmt.Sprintf("malformed status %q: HTTP "+
			"has 100 to 599",
			strings.TrimSpace(resp.Status)), maxText)}
	}
	result := policy.Result{
		Status:       resp.StatusCode,
		RetryAfter:   AskedWait(resp.StatusCode, resp.Header, time.Now()),
		NonRetryable: strings.EqualFold(strings.TrimSpace(resp.Header.Get("Ringback-Nonretryable")), "true"),
	}
	result.Header = keepHeader(resp.Header)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return result // the bytes after it are not a body and may never end
	}
	if keep <= 0 {
		keep = job.MaxAttemptBody
	}
	body, err := keepBody(resp.Body, keep)
	result.Body = body
	if err != nil {
		result.Class, result.Error = a.classify(err)
	}
	return result
}

// keepBody reads up to MaxRead bytes of a body and returns the first keep. Reading to the end makes the connection
// reusable.
func keepBody(body io.Reader, keep int) ([]byte, error) {
	if body == http.NoBody {
		return nil, nil
	}
	buffer, _ := buffers.Get().(*[8 << 10]byte)
	defer buffers.Put(buffer)
	var kept []byte
	for read := 0; read < MaxRead; {
		n, err := body.Read(buffer[:min(len(buffer), MaxRead-read)])
		read += n
		kept = append(kept, buffer[:min(n, keep-len(kept))]...)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return kept, nil
		}
		if err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// keepHeader bounds a header to job.MaxAttemptHeader bytes of names and values, and drops cookies. In a longer header,
// values are truncated to maxValue bytes, and fields are dropped, in order of names, after the bound is reached.
func keepHeader(h http.Header) map[string][]string {
	delete(h, "Set-Cookie")
	size := 0
	for name, values := range h {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	if size <= job.MaxAttemptHeader {
		return h
	}
	kept := make(map[string][]string)
	room := job.MaxAttemptHeader
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			// Cloned, because the values share one string with the whole header.
			v = string([]byte(v[:min(len(v), maxValue)]))
			if room -= len(name) + len(v); room < 0 {
				return kept
			}
			kept[name] = append(kept[name], v)
		}
	}
	return kept
}
