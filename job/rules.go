package job

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-playground/validator/v10"

	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
)

// Limits of requests. Those of ladders, rates and breakers are in package policy.
const (
	MaxURL = 2048
	// MaxBody is the largest body in bytes that engines store, also of a callback. The API's limit is smaller.
	MaxBody    = 1<<24 - 1
	MaxHeaders = 32 << 10 // bytes of names and values together, with 4 for each line
	// MaxHeaderLines bounds the lines of a job's headers, one per value: short lines take more memory than bytes.
	MaxHeaderLines = 100
	MaxLabels      = 16
	MaxRetries     = 1000
	MinTimeout     = 100 * time.Millisecond
	MaxTimeout     = 10 * time.Minute
	// MaxAhead is how far in the future a job may be due: ten years, leap days included. An expiry may be twice as far.
	MaxAhead = 3653 * day
	// MaxShare bounds a topic's workers and the concurrency of its lanes.
	MaxShare = 10_000
	// MaxIDWindow bounds policy.Topic.IDWindow.
	MaxIDWindow = 365 * day
	// maxEventID bounds the id of an event, so that the ids of its jobs are valid.
	maxEventID = 40
)

// day is 24 hours, independent of the calendar.
const day = 24 * time.Hour

// aliases are tags of the validator that several fields share, or whose bounds have names.
var aliases = map[string]string{
	"method":   "oneof=POST PUT PATCH GET DELETE",
	"retries":  fmt.Sprintf("min=0,max=%d", MaxRetries),
	"rungs":    fmt.Sprintf("min=1,max=%d", policy.MaxRungs),
	"rung":     fmt.Sprintf("min=%s,max=%s", policy.MinRung, policy.MaxRung),
	"timeout":  fmt.Sprintf("min=%s,max=%s", MinTimeout, MaxTimeout),
	"failures": fmt.Sprintf("min=0,max=%d", policy.MaxFailures),
	"open":     fmt.Sprintf("min=%s,max=%s", policy.MinOpen, policy.MaxOpen),
	"share":    fmt.Sprintf("min=1,max=%d", MaxShare),
	"window":   fmt.Sprintf("min=0s,max=%s", MaxIDWindow),
	"ahead":    fmt.Sprintf("min=0s,max=%s", MaxAhead),
	"age":      fmt.Sprintf("min=1ms,max=%s", MaxAhead),
	"backlog":  fmt.Sprintf("min=1s,max=%s", MaxAhead),
	"expiry":   fmt.Sprintf("min=1ms,max=%s", 2*MaxAhead),
}

// checks are our own tags of the validator for texts, each with its rule as errors say it.
var checks = map[string]struct {
	good func(text string) bool
	rule string
}{
	"id": {
		func(s string) bool { return IsID(s) && !strings.HasPrefix(s, reservedIDPrefix) },
		"must be 1 to 64 of A-Z a-z 0-9 _ : and -, not beginning with rb: (leave it out to be given one)",
	},
	"topic": {
		func(s string) bool { return IsTopic(s) && !IsReserved(s) && !isDotSegment(s) },
		"must be 1 to 64 of A-Z a-z 0-9 . _ and -, not beginning with _, and neither . nor ..",
	},
	"lane": {
		func(s string) bool { return IsLane(s) && !isDotSegment(s) },
		"must be 1 to 128 of A-Z a-z 0-9 . _ : [ ] and -, and neither . nor ..",
	},
	"namespace": {IsNamespace, NamespaceRule},
	"media_type": {
		func(s string) bool { return utf8.RuneCountInString(s) <= 255 && IsFieldValue(s) },
		"must be a media type of at most 255 characters, without line breaks and control characters",
	},
	"status": {isStatus, `must be a status of 300 to 599 such as "410", or a class: "3xx", "4xx" or "5xx"`},
	"event_type": {
		policy.IsEventType,
		"must be 1 to 128 of A-Z a-z 0-9 _ and -, in parts between full stops, such as order.paid",
	},
	"event_pattern": {
		policy.IsEventPattern,
		"must be a type of events such as order.paid, in which a part may be * and the last one **, " +
			"of at most 128 characters",
	},
	"event_id": {
		func(s string) bool { return consistsOf(s, maxEventID, "_-") },
		"must be 1 to 40 of A-Z a-z 0-9 _ and - (leave it out to be given one)",
	},
	"any_status": {isAnyStatus, `must be a status of 200 to 599 such as "200", or a class such as "2xx"`},
	"mark":       {isMark, markRule},
	"answer": {
		func(s string) bool { return len(s) <= policy.MaxSuccessBody },
		fmt.Sprintf("must be at most %d B", policy.MaxSuccessBody),
	},
	"target": {func(s string) bool { return checkURL(s) == "" }, ""}, // fieldError says which of its rules
}

// newValidator returns the validator with our tags, created at first use.
var newValidator = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	for name, tags := range aliases {
		v.RegisterAlias(name, tags)
	}
	for tag, c := range checks {
		err := v.RegisterValidation(tag, func(f validator.FieldLevel) bool { return c.good(f.Field().String()) })
		if err != nil {
			panic("job: register a rule: " + err.Error())
		}
	}
	return v
})

// Tags returns tags of the validator with those written out that stand for several.
func Tags(tags string) string {
	tags = "," + tags + ","
	for name, alias := range aliases {
		tags = strings.ReplaceAll(tags, ","+name+",", ","+alias+",")
	}
	return strings.Trim(tags, ",")
}

// RuleOf returns the rule of a field with tags of the validator, as errors say it. unit follows a number.
func RuleOf(tags string, t reflect.Type, unit string) string {
	least, most := "", ""
	for tag := range strings.SplitSeq(Tags(tags), ",") {
		name, value, _ := strings.Cut(tag, "=")
		switch name {
		case "min":
			least = bound(value, t)
		case "max":
			most = bound(value, t)
		case "oneof":
			words := strings.Fields(value)
			return "must be " + strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
		default:
			if c := checks[name]; c.rule != "" {
				return c.rule
			}
		}
	}
	verb := "must be "
	switch t.Kind() {
	case reflect.Slice:
		verb, unit = "must have ", " entries"
	case reflect.String:
		unit = " characters"
	}
	switch {
	case most == "":
		return verb + least + unit + " or more"
	case least == "":
		return verb + "at most " + most + unit
	default:
		return verb + least + " to " + most + unit
	}
}

// bound returns a bound as errors write it.
func bound(text string, t reflect.Type) string {
	if span, err := time.ParseDuration(text); err == nil && t == reflect.TypeFor[time.Duration]() {
		return units.FormatDuration(span)
	}
	return text
}
