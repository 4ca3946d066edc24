package layout

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Never is the score of a queue on the agenda that has no next moment.
const Never = int64(99_999_999_999_999)

// Int parses an integer; 0 if it is malformed.
func Int(s string) int64 {
	if s == "" {
		return 0 // frequent; an error would cost an allocation
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(s, 64)
	return int64(f)
}

// Time converts milliseconds of the store's clock; 0 is the zero Time.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Millis returns a duration in milliseconds, rounded up, so that waits are never shortened.
func Millis(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// MillisAt returns a time in milliseconds, rounded up.
func MillisAt(t time.Time) int64 {
	ms := t.UnixMilli()
	if time.UnixMilli(ms).Before(t) {
		ms++
	}
	return max(0, ms)
}

// FormatWait formats a wait as scripts read it: in ms.
func FormatWait(d time.Duration) string { return strconv.FormatInt(max(0, Millis(d)), 10) }

// causes are the causes of cooldowns as scripts store them.
const causes = "abu"

// FormatCause formats the cause of a cooldown.
func FormatCause(c store.CooldownCause) string { return causes[c : c+1] }

// ParseCause parses the cause of a cooldown; an unknown one is store.CooldownAsked.
func ParseCause(text string) store.CooldownCause {
	if i := strings.Index(causes, text); text != "" && i > 0 {
		return store.CooldownCause(i)
	}
	return store.CooldownAsked
}

// FormatDue formats a due time as scripts read it: '@' and ms for runAt, else a wait.
func FormatDue(delay time.Duration, runAt time.Time) string {
	if !runAt.IsZero() {
		return "@" + strconv.FormatInt(MillisAt(runAt), 10)
	}
	return FormatWait(delay)
}

// FormatExpiry formats an expiry like a due time; empty for none.
func FormatExpiry(in time.Duration, at time.Time) string {
	switch {
	case !at.IsZero():
		return "@" + strconv.FormatInt(at.UnixMilli(), 10)
	case in > 0:
		return FormatWait(in)
	default:
		return ""
	}
}

// FormatReason formats a reason as one word.
func FormatReason(r policy.Reason) string {
	if text := strings.Join(strings.Fields(string(r)), "_"); text != "" {
		return text
	}
	return "-"
}

// parseReason parses a reason; "-" is the empty one.
func parseReason(s string) policy.Reason {
	if s == "-" {
		return ""
	}
	return policy.Reason(s)
}

// FingerprintOf returns the fingerprint in the entry of a known id; nil: there is no entry.
func FingerprintOf(entry string) []byte {
	if entry == "" || len(entry) < 1+int(entry[0]) {
		return nil
	}
	return []byte(entry[1 : 1+int(entry[0])])
}

// ParseEnded parses the entry of a remembered id whose record was deleted: the fingerprint with its length, then
// state, end, reason and when the id is forgotten.
func ParseEnded(entry string) job.Progress {
	var p job.Progress
	if entry == "" || len(entry) < 1+int(entry[0]) {
		return p
	}
	var state, reason string
	var finished, forget int64
	if n, err := fmt.Sscanf(entry[1+int(entry[0]):], "%s %d %s %d", &state, &finished, &reason, &forget); err != nil ||
		n != 4 {
		return p
	}
	p.State, p.FinishedAt, p.Reason = Run{Lease: "-", State: state}.JobState(0), Time(finished), parseReason(reason)
	return p
}
