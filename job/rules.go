package job

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-playground/validator/v10"

	"github.com/ringback/ringback/policy"
)

// Bounds of what a request may ask for; those of ladders are policy's.
const (
	MaxURL = 2048
	// MaxBody bounds the bytes of a body, that of a callback too: more is held by no engine. What a client may register
	// is for the API to say.
	MaxBody    = 1<<24 - 1
	MaxHeaders = 32 << 10 // bytes of names and values together, with 4 for each line
	// MaxHeaderLines bounds the lines of a job's headers, one for each value. A short line takes far more memory than it has
	// bytes.
	MaxHeaderLines = 100
	MaxLabels      = 16
	MaxRetries     = 1000
	MinTimeout     = 100 * time.Millisecond
	MaxTimeout     = 10 * time.Minute
	// MaxAhead is how far in the future a job may be due: ten years, leap days included. An expiry may lie twice as far.
	MaxAhead = 3653 * day
	// MaxShare bounds a topic's workers and the concurrency of its lanes.
	MaxShare = 10_000
	// MaxIDWindow bounds how long ids of ended jobs are remembered.
	MaxIDWindow = 365 * day
)

// A rule says what a field must be. There is one for each name, whichever type it stands in.
type rule struct {
	field string // its Go name
	name  string // its name in the API
	tags  string // what the validator checks
	says  string // what a fault says; empty: see detail
	each  string // what the fault of one of its elements says
}

// rules are checked by the validator. What depends on the clock, or names entries of maps, is not among them.
var rules = []rule{
	{
		field: "ID", name: "id", tags: "omitempty,id",
		says: "must be 1 to 64 of A-Z a-z 0-9 _ : and -, not beginning with rb: (leave it out to be given one)",
	},
	{
		field: "Topic", name: "topic", tags: "omitempty,topic",
		says: "must be 1 to 64 of A-Z a-z 0-9 . _ and -, not beginning with _, and neither . nor ..",
	},
	{
		field: "Lane", name: "lane", tags: "omitempty,lane",
		says: "must be 1 to 128 of A-Z a-z 0-9 . _ : [ ] and -, and neither . nor ..",
	},
	{field: "URL", name: "url", tags: "omitempty,target"},
	{
		field: "Method", name: "method", tags: "omitempty,oneof=POST PUT PATCH GET DELETE",
		says: "must be POST, PUT, PATCH, GET or DELETE",
	},
	{
		field: "ContentType", name: "content_type", tags: "omitempty,max=255,field_value",
		says: "must be a media type of at most 255 B, without line breaks and control characters",
	},
	{field: "Delay", name: "delay", tags: spans(0, MaxAhead), says: "must be 0s to 3653d (ten years)"},
	{
		field: "ExpiresIn", name: "expires_in", tags: "omitempty," + spans(time.Millisecond, 2*MaxAhead),
		says: "must be 1ms to 7306d (twenty years)",
	},
	{
		field: "Retries", name: "retries", tags: fmt.Sprintf("omitnil,min=0,max=%d", MaxRetries),
		says: "must be 0 to 1000",
	},
	{
		field: "Ladder", name: "ladder",
		tags: fmt.Sprintf("omitnil,min=1,max=%d,dive,%s", policy.MaxRungs, spans(policy.MinRung, policy.MaxRung)),
		says: "must have 1 to 100 rungs", each: "must be 1ms to 30d",
	},
	{field: "Timeout", name: "timeout", tags: "omitempty," + spans(MinTimeout, MaxTimeout), says: "must be 100ms to 10m"},

	{field: "Jitter", name: "jitter", tags: "omitnil,min=0,max=1", says: "must be 0 to 1"},
	{
		field: "MaxAge", name: "max_age", tags: "omitempty," + spans(time.Millisecond, MaxAhead),
		says: "must be 1ms to 3653d (ten years)",
	},
	{field: "Workers", name: "workers", tags: shares, says: "must be 1 to 10000"},
	{field: "LaneConcurrency", name: "lane_concurrency", tags: shares, says: "must be 1 to 10000"},
	{
		field: "GiveUpOn", name: "give_up_on", tags: "omitnil,max=100,dive,status",
		says: "must have at most 100 entries", each: `must be a status of 300 to 599 such as "410", or a class: "3xx", "4xx" or "5xx"`,
	},
	{field: "IDWindow", name: "id_window", tags: "omitnil," + spans(0, MaxIDWindow), says: "must be 0s to 365d"},
	{field: "Success", name: "success"},
	{
		field: "Status", name: "status", tags: "omitnil,min=1,max=100,dive,any_status", says: "must have 1 to 100 entries",
		each: `must be a status of 200 to 599 such as "200", or a class such as "2xx"`,
	},
	{field: "BodyEquals", name: "body_equals", tags: "answer", says: successBodySays},
	{field: "BodyContains", name: "body_contains", tags: "answer", says: successBodySays},
	{field: "Breaker", name: "breaker"},
	{
		field: "Failures", name: "failures", tags: fmt.Sprintf("omitnil,min=0,max=%d", policy.MaxFailures),
		says: "must be 0 (never) to 1000000",
	},
	{field: "Open", name: "open", tags: "omitempty," + spans(policy.MinOpen, policy.MaxOpen), says: "must be 1s to 1h"},
	{field: "OnDelivered", name: "on_delivered"},
	{field: "OnDead", name: "on_dead"},
	{field: "OnBacklog", name: "on_backlog"},
	{
		field: "Include", name: "include", tags: "omitnil,max=3,dive,oneof=body headers query",
		says: "must have at most 3 entries", each: "must be body, headers or query",
	},
	{
		field: "OlderThan", name: "older_than", tags: "omitempty," + spans(time.Second, MaxAhead),
		says: "must be 1s to 3653d (ten years)",
	},
	{field: "MoreThan", name: "more_than", tags: "omitempty,min=1", says: "must be 1 or more"},
	{field: "KeepDelivered", name: "keep_delivered"},
	{field: "KeepDead", name: "keep_dead"},
	{field: "For", name: "for", tags: "omitnil," + spans(0, MaxAhead), says: "must be 0s to 3653d (ten years)"},
	{field: "Max", name: "max", tags: "omitnil,min=0,max=1000000000", says: "must be 0 to 1000000000"},
	{field: "MaxBytes", name: "max_bytes", tags: "omitnil,min=0", says: "must be 0 or more"},
}

// What a success may ask of a body.
const successBodySays = "must be at most 4096 B"

// shares are the tags of numbers of attempts in flight.
var shares = fmt.Sprintf("omitempty,min=1,max=%d", MaxShare)

// spans are the tags of a duration with its bounds.
func spans(least, most time.Duration) string { return fmt.Sprintf("min=%s,max=%s", least, most) }

// checker is the validator with the rules, made at first use.
var checker = sync.OnceValue(func() *validator.Validate {
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
		"id":          func(s string) bool { return IsID(s) && !strings.HasPrefix(s, ownPrefix) },
		"topic":       func(s string) bool { return IsTopic(s) && s[0] != '_' && !isDots(s) },
		"lane":        func(s string) bool { return IsLane(s) && !isDots(s) },
		"target":      func(s string) bool { return targetFault(s) == "" },
		"field_value": isFieldValue,
		"status":      isStatus,
		"any_status":  isAnyStatus,
		"answer":      func(s string) bool { return len(s) <= policy.MaxSuccessBody },
	} {
		err := v.RegisterValidation(tag, func(f validator.FieldLevel) bool { return good(f.Field().String()) })
		if err != nil {
			panic("job: a rule cannot be registered: " + err.Error())
		}
	}
	return v
})

// ruleOf finds a rule by its name in the API.
var ruleOf = sync.OnceValue(func() map[string]rule {
	all := make(map[string]rule, len(rules))
	for _, r := range rules {
		all[r.name] = r
	}
	return all
})
