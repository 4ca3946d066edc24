package job

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-playground/validator/v10"

	"github.com/ringback/ringback/policy"
)

// Validate returns all invalid fields of a registration under their names in the API; nil: valid. run_at and expires_at
// are compared with now. Rules of the topic or the installation (allowed targets, the API's body limit) are not
// checked.
//
// It also validates edits: zero fields count as absent. Pass a negative duration for an explicit zero that is not
// allowed.
func Validate(n New, now time.Time) []FieldError {
	errs := Check(n)
	errs = append(errs, checkHeaders("/headers", n.Header, false)...)
	errs = append(errs, checkCallbacks(n.OnDelivered, n.OnDead)...)
	if len(n.Body) > MaxBody {
		errs = append(errs, FieldError{"/body", fmt.Sprintf("must be at most %d B", MaxBody)})
	}
	errs = append(errs, checkLabels("/labels", n.Labels)...)
	if n.Delay != 0 && !n.RunAt.IsZero() {
		errs = append(errs, MutuallyExclusive("/run_at", "delay"))
	}
	if n.ExpiresIn != 0 && !n.ExpiresAt.IsZero() {
		errs = append(errs, MutuallyExclusive("/expires_at", "expires_in"))
	}
	errs = append(errs, checkTime("/run_at", n.RunAt, now, MaxAhead, "ten")...)
	if invalid := checkTime("/expires_at", n.ExpiresAt, now, 2*MaxAhead, "twenty"); len(invalid) > 0 {
		return append(errs, invalid...)
	}
	if n.RunAt.IsZero() && n.ExpiresIn > 0 || !n.RunAt.IsZero() && !n.ExpiresAt.IsZero() {
		// Two durations or two times: their order does not depend on now.
		return append(errs, ValidateExpiry(&n, time.Time{})...)
	}
	return errs
}

// ValidateExpiry returns an error for an expiry before the job is due, seen from now. Validate reports those that hold
// at any time. The others are invalid only for a new job, not for a repeated registration.
func ValidateExpiry(n *New, now time.Time) []FieldError {
	in, at := n.ExpiresIn > 0, !n.ExpiresAt.IsZero()
	if n.ExpiresIn != 0 && at || n.Delay != 0 && !n.RunAt.IsZero() {
		return nil // ambiguous; Validate reports it
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

// ValidateTopic returns all invalid fields of a topic's policy under their names in the API. Zero fields count as
// absent. Pass a negative number for an explicit zero that is not allowed.
func ValidateTopic(t policy.Topic) []FieldError {
	errs := append(Check(t), checkHeaders("/headers", t.Headers, true)...)
	errs = append(errs, checkCallbacks(t.OnDelivered, t.OnDead)...)
	if b := t.OnBacklog; b != nil {
		errs = append(errs, checkCallback("/on_backlog", &b.Callback)...)
		if b.OlderThan == 0 && b.MoreThan == 0 {
			errs = append(errs, FieldError{"/on_backlog", "must set older_than, more_than, or both"})
		}
	}
	return errs
}

// ValidateLane returns all invalid fields of a lane's settings under their names in the API.
func ValidateLane(l policy.Lane) []FieldError {
	errs := append(Check(l), checkHeaders("/headers", l.Headers, true)...)
	return append(errs, checkLabels("/subscribe_labels", l.SubscribeLabels)...)
}

// checkCallbacks validates the callbacks of a job's end.
func checkCallbacks(onDelivered, onDead *policy.Callback) []FieldError {
	return append(checkCallback("/on_delivered", onDelivered), checkCallback("/on_dead", onDead)...)
}

// checkCallback validates the headers and the URL of a callback.
func checkCallback(at string, c *policy.Callback) []FieldError {
	if c == nil || c.Off {
		return nil
	}
	errs := checkHeaders(at+"/headers", c.Headers, true)
	for name := range c.Headers {
		if SameHeader(name, "Content-Type") {
			errs = append(errs,
				FieldError{JSONPointer(at+"/headers", name), "must not be set: callbacks are application/json"})
		}
	}
	if c.URL == "" {
		errs = append(errs, FieldError{at + "/url", "is required"})
	}
	return errs
}

// MutuallyExclusive returns the error of a field that cannot be combined with another.
func MutuallyExclusive(field, other string) FieldError {
	return FieldError{Field: field, Detail: "cannot be combined with " + other}
}

// Check applies the rules in the tags of a struct's fields, and names the fields as in the API. The struct must not be
// passed by its pointer: the validator copies every field that it can address.
func Check(of any) []FieldError {
	err := newValidator().Struct(of)
	if err == nil {
		return nil
	}
	found, ok := errors.AsType[validator.ValidationErrors](err)
	if !ok {
		panic("job: validate: " + err.Error())
	}
	errs := make([]FieldError, len(found))
	for i, f := range found {
		errs[i] = fieldError(reflect.TypeOf(of), f)
	}
	return errs
}

// fieldError returns the error of a field: of "New.Spec.Terms.Ladder[2]" that of "/ladder/2". root is the type of the
// struct that was validated.
func fieldError(root reflect.Type, f validator.FieldError) FieldError {
	var pointer strings.Builder
	var field reflect.StructField
	rule, unit := "", ""
	for _, step := range strings.Split(f.StructNamespace(), ".")[1:] {
		goName, index, element := strings.Cut(step, "[")
		field, _ = root.FieldByName(goName)
		if root = field.Type; root.Kind() == reflect.Pointer {
			root = root.Elem()
		}
		name, options := memberOf(field)
		if name != "" { // else it is embedded
			pointer.WriteString("/" + name)
		}
		if slices.Contains(options, "size") {
			unit = " B"
		}
		var ofElements string
		rule, ofElements, _ = strings.Cut(field.Tag.Get("validate"), ",dive,")
		if element {
			pointer.WriteString("/" + strings.TrimSuffix(index, "]"))
			rule, root = ofElements, root.Elem()
		}
	}
	detail := RuleOf(rule, root, unit)
	if f.Tag() == "target" {
		value, _ := f.Value().(string)
		detail = checkURL(value)
	}
	return FieldError{Field: pointer.String(), Detail: detail}
}

// checkURL returns the violated rule of a target URL; empty: valid.
func checkURL(target string) string {
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
		return "must not contain a user or password: use a header such as Authorization"
	case strings.Contains(target, "#"):
		return "must not have a fragment: escape a literal # as %23"
	case strings.ContainsFunc(u.RawQuery, mustBeEscaped):
		return "must have a query of visible ASCII: escape other characters, a space as %20"
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "must have a port of 1 to 65535, or none"
		}
	}
	return ""
}

// mustBeEscaped reports whether a character would break the request line. net/url escapes paths, but not queries.
// Invalid UTF-8 counts as beyond ASCII.
func mustBeEscaped(r rune) bool { return r <= ' ' || r >= 0x7f }

// checkTime validates a time chosen by a client. The past is allowed: it means now.
func checkTime(field string, t, now time.Time, ahead time.Duration, years string) []FieldError {
	if t.IsZero() || t.Unix() >= 0 && t.Sub(now) <= ahead {
		return nil
	}
	return []FieldError{{Field: field, Detail: "must be between 1970 and " + years + " years from now"}}
}

// checkLabels validates labels.
func checkLabels(at string, labels map[string]string) []FieldError {
	if len(labels) > MaxLabels { // report no further errors
		return []FieldError{{at, fmt.Sprintf("must be at most %d", MaxLabels)}}
	}
	var errs []FieldError
	for key, value := range labels {
		if !IsTopic(key) || strings.HasPrefix(key, "rb.") {
			errs = append(errs, FieldError{
				JSONPointer(at, key),
				"must have a name of 1 to 64 of A-Z a-z 0-9 . _ and -, not beginning with rb.",
			})
		}
		if len(value) > 256 || strings.IndexByte(value, 0) >= 0 {
			errs = append(errs, FieldError{JSONPointer(at, key), "must be text of at most 256 B, without NUL"})
		}
	}
	return sortFieldErrors(errs)
}

// sortFieldErrors sorts errors that were collected from a map.
func sortFieldErrors(errs []FieldError) []FieldError {
	slices.SortFunc(errs, func(a, b FieldError) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
	})
	return errs
}

// maxPointerName bounds a member's name in a JSON pointer, in bytes.
const maxPointerName = 128

// JSONPointer returns the JSON pointer (RFC 6901) of a member. Longer names than maxPointerName are truncated.
func JSONPointer(parent, name string) string {
	if len(name) > maxPointerName {
		name = strings.ToValidUTF8(name[:maxPointerName], "") + "…"
	}
	return parent + "/" + pointerEscapes.Replace(name)
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
