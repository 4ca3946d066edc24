package job

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-playground/validator/v10"

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
)

// day is 24 hours, independent of the calendar.
const day = 24 * time.Hour

// rule is the validation rule of a field. Fields of the same name share one rule.
type rule struct {
	field          string // its Go name
	name           string // its name in the API
	tags           string // the validator's tags
	message        string // the error's detail; empty: see fieldError
	elementMessage string // the detail of an invalid element
}

// rules are the validator's rules. Validate checks rules about the clock and about map entries.
var rules = slices.Concat(specRules, settingRules)

// settingRules are the rules of the other fields: those of policies, lane settings and callbacks.
var settingRules = []rule{
	{field: "Jitter", name: "jitter", tags: "omitnil,min=0,max=1", message: "must be 0 to 1"},
	{
		field: "MaxAge", name: "max_age", tags: "omitempty," + rangeTags(time.Millisecond, MaxAhead),
		message: "must be 1ms to 3653d (ten years)",
	},
	{field: "Workers", name: "workers", tags: shareTags, message: "must be 1 to 10000"},
	{
		field: "Deliver", name: "deliver", tags: "omitempty,oneof=push pull handler",
		message: "must be push, pull or handler",
	},
	{field: "LaneConcurrency", name: "lane_concurrency", tags: shareTags, message: "must be 1 to 10000"},
	{
		field: "GiveUpOn", name: "give_up_on", tags: "omitnil,max=100,dive,status",
		message:        "must have at most 100 entries",
		elementMessage: `must be a status of 300 to 599 such as "410", or a class: "3xx", "4xx" or "5xx"`,
	},
	{field: "IDWindow", name: "id_window", tags: "omitnil," + rangeTags(0, MaxIDWindow), message: "must be 0s to 365d"},
	{field: "Success", name: "success"},
	{
		field: "Status", name: "status", tags: "omitnil,min=1,max=100,dive,any_status",
		message:        "must have 1 to 100 entries",
		elementMessage: `must be a status of 200 to 599 such as "200", or a class such as "2xx"`,
	},
	{field: "BodyEquals", name: "body_equals", tags: "answer", message: successBodyMessage},
	{field: "BodyContains", name: "body_contains", tags: "answer", message: successBodyMessage},
	{field: "Breaker", name: "breaker"},
	{
		field: "Failures", name: "failures", tags: fmt.Sprintf("omitnil,min=0,max=%d", policy.MaxFailures),
		message: "must be 0 (never) to 1000000",
	},
	{
		field: "Open", name: "open", tags: "omitempty," + rangeTags(policy.MinOpen, policy.MaxOpen),
		message: "must be 1s to 1h",
	},
	{field: "OnDelivered", name: "on_delivered"},
	{field: "OnDead", name: "on_dead"},
	{field: "OnBacklog", name: "on_backlog"},
	{
		field: "Include", name: "include", tags: "omitnil,max=3,dive,oneof=body headers query",
		message: "must have at most 3 entries", elementMessage: "must be body, headers or query",
	},
	{
		field: "OlderThan", name: "older_than", tags: "omitempty," + rangeTags(time.Second, MaxAhead),
		message: "must be 1s to 3653d (ten years)",
	},
	{field: "MoreThan", name: "more_than", tags: "omitempty,min=1", message: "must be 1 or more"},
	{field: "KeepDelivered", name: "keep_delivered"},
	{field: "KeepDead", name: "keep_dead"},
	{field: "For", name: "for", tags: "omitnil," + rangeTags(0, MaxAhead), message: "must be 0s to 3653d (ten years)"},
	{field: "Max", name: "max", tags: "omitnil,min=0,max=1000000000", message: "must be 0 to 1000000000"},
	{field: "ManagedBy", name: "managed_by", tags: "omitempty,mark", message: markRule},
	{field: "MaxBytes", name: "max_bytes", tags: "omitnil,min=0", message: "must be 0 or more"},
}

// successBodyMessage is the message of body_equals and body_contains.
const successBodyMessage = "must be at most 4096 B"

// shareTags are the tags of a number of attempts in flight.
var shareTags = fmt.Sprintf("omitempty,min=1,max=%d", MaxShare)

// rangeTags returns the tags of a duration's bounds.
func rangeTags(least, most time.Duration) string { return fmt.Sprintf("min=%s,max=%s", least, most) }

// newValidator returns the validator with the rules, created at first use.
var newValidator = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	names, tags := make(map[string]string), make(map[string]string)
	for _, r := range rules {
		names[r.field] = r.name
		if r.tags != "" {
			tags[r.field] = r.tags
		}
	}
	v.RegisterTagNameFunc(func(f reflect.StructField) string { return names[f.Name] })
	v.RegisterStructValidationMapRules(tags, New{}, Spec{}, Queue{}, policy.Terms{}, policy.Topic{}, policy.Retention{},
		policy.Success{}, policy.Breaker{}, policy.Callback{}, policy.Backlog{}, policy.Lane{})
	for tag, good := range map[string]func(string) bool{
		"id":          func(s string) bool { return IsID(s) && !strings.HasPrefix(s, reservedIDPrefix) },
		"topic":       func(s string) bool { return IsTopic(s) && !IsReserved(s) && !isDotSegment(s) },
		"lane":        func(s string) bool { return IsLane(s) && !isDotSegment(s) },
		"target":      func(s string) bool { return checkURL(s) == "" },
		"field_value": IsFieldValue,
		"status":      isStatus,
		"any_status":  isAnyStatus,
		"mark":        isMark,
		"answer":      func(s string) bool { return len(s) <= policy.MaxSuccessBody },
	} {
		err := v.RegisterValidation(tag, func(f validator.FieldLevel) bool { return good(f.Field().String()) })
		if err != nil {
			panic("job: register a rule: " + err.Error())
		}
	}
	return v
})

// ruleOf returns the rules by their name in the API.
var ruleOf = sync.OnceValue(func() map[string]rule {
	all := make(map[string]rule, len(rules))
	for _, r := range rules {
		all[r.name] = r
	}
	return all
})
