package job

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-playground/validator/v10"

	"github.com/ringback/ringback/policy"
)

// Validate names everything that is wrong with a registration, by the names of the API; nil when it can be taken. now
// is the moment that run_at and expires_at are compared with. What depends on a topic or on the installation (whether
// the URL may be called, how large a body may be) is not checked here.
//
// It also serves edits: fields left zero are taken as not said, so a New that holds an edit's fields can be checked. A
// duration that was said to be zero and must not be is to be given as a negative one.
func Validate(n New, now time.Time) []FieldError {
	faults := check(&n)
	faults = append(faults, headerFaults("/headers", n.Header, false)...)
	faults = append(faults, callbackFaults(n.OnDelivered, n.OnDead)...)
	if len(n.Body) > MaxBody {
		faults = append(faults, FieldError{"/body", fmt.Sprintf("must be at most %d B", MaxBody)})
	}
	faults = append(faults, labelFaults(n.Labels)...)
	if n.Delay != 0 && !n.RunAt.IsZero() {
		faults = append(faults, MutuallyExclusive("/run_at", "delay"))
	}
	if n.ExpiresIn != 0 && !n.ExpiresAt.IsZero() {
		faults = append(faults, MutuallyExclusive("/expires_at", "expires_in"))
	}
	faults = append(faults, timeFaults("/run_at", n.RunAt, now, MaxAhead, "ten")...)
	if wrong := timeFaults("/expires_at", n.ExpiresAt, now, 2*MaxAhead, "twenty"); len(wrong) > 0 {
		return append(faults, wrong...)
	}
	if n.RunAt.IsZero() && n.ExpiresIn > 0 || !n.RunAt.IsZero() && !n.ExpiresAt.IsZero() {
		// Two durations or two moments: which comes first does not depend on now.
		return append(faults, ValidateExpiry(&n, time.Time{})...)
	}
	return faults
}

// ValidateExpiry names an expiry that comes before the job is due, seen from now. Validate finds what is so at any moment.
// The rest depends on now: it is wrong with a new job only, not with one that was registered in time and is sent again.
func ValidateExpiry(n *New, now time.Time) []FieldError {
	in, at := n.ExpiresIn > 0, !n.ExpiresAt.IsZero()
	if n.ExpiresIn != 0 && at || n.Delay != 0 && !n.RunAt.IsZero() {
		return nil // which of the two is meant is not known
	}
	due := now.Add(max(n.Delay, 0))
	if n.RunAt.After(now) {
		due = n.RunAt
	}
	switch {
	case in && now.Add(n.ExpiresIn).Before(due):
		return []FieldError{{"/expires_in", "must not end before the job is due"}}
	case at && n.ExpiresAt.Before(due):
		return []FieldError{{"/expires_at", "must not be before the job is due"}}
	}
	return nil
}

// ValidateTopic names everything that is wrong with a topic's policy, by the names of the API. Zero fields are taken as
// not said; a zero that was said and must not be is to be given as a negative number.
func ValidateTopic(t policy.Topic) []FieldError {
	faults := append(check(&t), headerFaults("/headers", t.Headers, true)...)
	faults = append(faults, callbackFaults(t.OnDelivered, t.OnDead)...)
	if b := t.OnBacklog; b != nil {
		faults = append(faults, tellFaults("/on_backlog", &b.Callback)...)
		if b.OlderThan == 0 && b.MoreThan == 0 {
			faults = append(faults, FieldError{"/on_backlog", "must set older_than, more_than, or both"})
		}
	}
	return faults
}

// ValidateLane names everything that is wrong with a lane's settings, by the names of the API.
func ValidateLane(l policy.Lane) []FieldError {
	return append(check(&l), headerFaults("/headers", l.Headers, true)...)
}

// callbackFaults checks whom to tell of a job's end.
func callbackFaults(onDelivered, onDead *policy.Callback) []FieldError {
	return append(tellFaults("/on_delivered", onDelivered), tellFaults("/on_dead", onDead)...)
}

// tellFaults checks what the validator does not of a callback.
func tellFaults(at string, c *policy.Callback) []FieldError {
	if c == nil {
		return nil
	}
	faults := headerFaults(at+"/headers", c.Headers, true)
	for name := range c.Headers {
		if SameHeader(name, "Content-Type") {
			faults = append(faults, FieldError{JSONPointer(at+"/headers", name), "must not be set: callbacks are application/json"})
		}
	}
	if c.URL == "" {
		faults = append(faults, FieldError{at + "/url", "is required"})
	}
	return faults
}

// MutuallyExclusive is the fault of a field that stands beside another which says the same otherwise.
func MutuallyExclusive(field, other string) FieldError {
	return FieldError{Field: field, Detail: "cannot be combined with " + other}
}

// check asks the validator.
func check(of any) []FieldError {
	var found validator.ValidationErrors
	if err := checker().Struct(of); err == nil {
		return nil
	} else if !errors.As(err, &found) {
		panic("job: the validator cannot check: " + err.Error())
	}
	faults := make([]FieldError, len(found))
	for i, f := range found {
		faults[i] = faultOf(f)
	}
	return faults
}

// faultOf turns the validator's "New.Spec.Terms.ladder[2]" into "/ladder/2", and names the rule.
func faultOf(f validator.FieldError) FieldError {
	var pointer strings.Builder
	name, element := "", false
	for _, step := range strings.Split(f.Namespace(), ".")[1:] {
		var index string
		name, index, element = strings.Cut(step, "[")
		if _, ok := ruleOf()[name]; !ok {
			continue // an embedded struct
		}
		pointer.WriteString("/" + name)
		if element {
			pointer.WriteString("/" + strings.TrimSuffix(index, "]"))
		}
	}
	detail := ruleOf()[name].says
	switch {
	case name == "url":
		value, _ := f.Value().(string)
		detail = targetFault(value)
	case element:
		detail = ruleOf()[name].each
	}
	return FieldError{Field: pointer.String(), Detail: detail}
}

// targetFault says what is wrong with a URL that is to be called; empty when nothing is.
func targetFault(target string) string {
	if len(target) > MaxURL {
		return fmt.Sprintf("must be at most %d B long", MaxURL)
	}
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return "must be a URL such as https://shop.example/hooks/close"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://"
	case u.Hostname() == "":
		return "must name a host"
	case u.User != nil:
		return "must not contain a user or password: put them into a header such as Authorization"
	case strings.Contains(target, "#"):
		return "must not have a fragment, which is never sent: write a # that belongs to the URL as %23"
	case strings.ContainsFunc(u.RawQuery, mustBeEscaped):
		return "must have a query of visible ASCII: everything else must be escaped, a space as %20"
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "must have a port of 1 to 65535, or none"
		}
	}
	return ""
}

// mustBeEscaped reports whether a character would spoil the request line. net/url escapes a path, but sends a query as
// it is. Bytes that are no UTF-8 count as beyond ASCII.
func mustBeEscaped(r rune) bool { return r <= ' ' || r >= 0x7f }

// timeFaults checks an instant that a client chose. The past is allowed: it means now.
func timeFaults(field string, t, now time.Time, ahead time.Duration, years string) []FieldError {
	if t.IsZero() || t.Unix() >= 0 && t.Sub(now) <= ahead {
		return nil
	}
	return []FieldError{{Field: field, Detail: "must be between 1970 and " + years + " years from now"}}
}

// labelFaults checks labels.
func labelFaults(labels map[string]string) []FieldError {
	if len(labels) > MaxLabels { // and whatever else is wrong with so many
		return []FieldError{{"/labels", fmt.Sprintf("must be at most %d", MaxLabels)}}
	}
	var faults []FieldError
	for key, value := range labels {
		if !IsTopic(key) || strings.HasPrefix(key, "rb.") {
			faults = append(faults, FieldError{
				JSONPointer("/labels", key), "must have a name of 1 to 64 of A-Z a-z 0-9 . _ and -, not beginning with rb.",
			})
		}
		if len(value) > 256 || strings.IndexByte(value, 0) >= 0 {
			faults = append(faults, FieldError{JSONPointer("/labels", key), "must be text of at most 256 B, without NUL"})
		}
	}
	return sorted(faults)
}

// sorted brings faults found in the order of a map into one that stays.
func sorted(faults []FieldError) []FieldError {
	slices.SortFunc(faults, func(a, b FieldError) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
	})
	return faults
}

// longestName is how much of a member's name a pointer shows.
const longestName = 128

// JSONPointer is the JSON pointer (RFC 6901) of a member. Overlong names are cut.
func JSONPointer(parent, name string) string {
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "") + "…"
	}
	return parent + "/" + pointerEscapes.Replace(name)
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
