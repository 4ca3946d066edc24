package api

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// shape is the schema of a value.
type shape struct {
	ref       string   // the name of a schema, or
	kind      string   // the type; empty: any
	attrs     []string // further members
	enum      []string
	oneOf     []string // schemas, in place of a type
	null      bool
	rule      string // what the schema cannot express
	isDefault bool   // the default is among attrs
}

// parts returns the members of the schema.
func (s shape) parts() []string {
	if s.ref != "" {
		s.oneOf = []string{refTo(s.ref)}
	}
	switch {
	case len(s.oneOf) == 1 && !s.null:
		return append([]string{strings.Trim(s.oneOf[0], "{}")}, s.attrs...)
	case s.oneOf != nil:
		if s.null {
			s.oneOf = append(s.oneOf, `{type: "null"}`)
		}
		return append([]string{"oneOf: [" + strings.Join(s.oneOf, ", ") + "]"}, s.attrs...)
	case s.kind == "":
		return nil
	}
	kind := s.kind
	if s.null {
		kind = "[" + kind + `, "null"]`
	}
	parts := append([]string{"type: " + kind}, s.attrs...)
	if s.enum != nil {
		if s.null {
			s.enum = append(slices.Clone(s.enum), "null")
		}
		parts = slices.Insert(parts, 1, "enum: ["+strings.Join(s.enum, ", ")+"]")
	}
	return parts
}

func refTo(schema string) string { return `{$ref: "#/components/schemas/` + schema + `"}` }

// shapeOf returns the schema of a field in a use.
func (c schemaWriter) shapeOf(f field, u use) shape {
	c.Helper()
	s := c.shapeOfType(f, f.Type, u)
	switch u {
	case answerUse:
		s.null = s.null || !f.Is("always") && f.Or() == ""
	case changeUse:
		s.null = true
	case editUse:
		s.null = f.Is("nullable")
	}
	if x := extras[f.key]; x != "" {
		s.attrs = append(s.attrs, x)
	}
	if own, _ := f.rules(); f.Or() != "" && (u == newUse || u == putUse) && own != "" {
		s.attrs, s.isDefault = append(s.attrs, "default: "+f.Or()), true
	}
	return s
}

// extras are bounds that no tag has: something else enforces them.
var extras = map[string]string{
	"schedule.Spec.Cron":        fmt.Sprintf("maxLength: %d", schedule.MaxCron),
	"job.Event.Fields":          fmt.Sprintf("maxItems: %d", job.MaxFields),
	"job.Event.Actor":           fmt.Sprintf("maxLength: %d", job.MaxActor),
	"store.Schedule.Last":       fmt.Sprintf("maxItems: %d", store.MaxScheduleTicks),
	"store.WorkCounts.Failures": "maxItems: 100",
	"policy.ClientCert.Key":     `const: "[redacted]"`,
}

// enums are the values of types.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[store.TickOutcome](): textsOf(store.TickOutcomes()),
	reflect.TypeFor[store.WorkAction](): textsOf([]store.WorkAction{
		store.WorkRevive, store.WorkPurge, store.WorkCancel, store.WorkRun, store.WorkEdit,
	}),
	reflect.TypeFor[store.WorkState](): textsOf([]store.WorkState{
		store.WorkRunning, store.WorkDone, store.WorkStopped, store.WorkFailed,
	}),
	reflect.TypeFor[job.EventKind](): textsOf([]job.EventKind{
		job.EventCreated, job.EventEdited, job.EventRun, job.EventRevived, job.EventCancelled,
	}),
}

func textsOf[T ~string](values []T) (all []string) {
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

// refsByField are the schemas of fields whose types and tags do not say them.
var refsByField = map[string]string{
	"access.Principal.Namespace": "NamespaceName",
	"access.Token.ID":            "TokenID",
	"job.Namespace.Store":        "StoreName",
	"policy.Callback.Include[]":  "Include",
	"access.Token.Namespace":     "NamespaceName",
	"store.LaneFailure.JobID":    "JobID",
	"store.Schedule.Description": "ScheduleDescription",
}

// refsByType are the schemas of types, and refsByTag those of tags of the validator.
var (
	refsByType = map[reflect.Type]string{
		reflect.TypeFor[policy.Rate]():       "Rate",
		reflect.TypeFor[map[string]string](): "Labels",
		reflect.TypeFor[job.State]():         "State",
		reflect.TypeFor[access.Role]():       "Role",
		reflect.TypeFor[access.Topics]():     "TopicPatterns",
	}
	refsByTag = map[string]string{
		"topic": "TopicName", "lane": "LaneName", "namespace": "NamespaceName", "event_type": "EventType",
	}
	// attrsByTag are bounds of texts in requests.
	attrsByTag = map[string]string{
		"id":         `pattern: "^[A-Za-z0-9_:-]{1,64}$"`,
		"media_type": "maxLength: 255",
		"mark":       `pattern: "^[A-Za-z0-9._:/-]{1,64}$"`,
		"event_id":   `pattern: "^[A-Za-z0-9_-]{1,40}$"`,
		"answer":     fmt.Sprintf("maxLength: %d", policy.MaxSuccessBody),
		"status":     `pattern: "^[3-5]([0-9][0-9]|xx)$"`,
		"any_status": `pattern: "^[2-5]([0-9][0-9]|xx)$"`,
	}
)

// shapeOfType returns the schema of values of a type.
func (c schemaWriter) shapeOfType(f field, of reflect.Type, u use) (s shape) {
	c.Helper()
	own, ofElements := f.rules()
	own = job.Tags(own)
	isAnswer := u == answerUse
	merges := u == changeUse || u == putUse
	switch {
	case refsByField[f.key] != "":
		return shape{ref: refsByField[f.key]}
	case refsByType[of] != "":
		return shape{ref: refsByType[of]}
	case of == reflect.TypeFor[policy.Sealed]():
		return shape{kind: "string"}
	case of.String() == "json.RawMessage":
		return shape{}
	case of == spanType && isAnswer:
		return shape{ref: "Span"}
	case of == spanType:
		if own != "" {
			s.rule = f.rule()
		}
		s.ref = "Duration"
		return s
	case of == reflect.TypeFor[time.Time]():
		return shape{kind: "string", attrs: []string{"format: date-time"}}
	case of == reflect.TypeFor[policy.Ladder]() && isAnswer:
		return shape{kind: "array", attrs: []string{"items: " + refTo("Span")}}
	case of == reflect.TypeFor[policy.Ladder]():
		return shape{ref: "Ladder"}
	case of == reflect.TypeFor[map[string][]string]() && merges:
		return shape{ref: "HeaderChange", null: true}
	case of == reflect.TypeFor[map[string][]string]():
		return shape{ref: "Headers"}
	case of == reflect.TypeFor[*policy.Callback]() && !isAnswer:
		inner := newUse
		if merges {
			inner = changeUse
		}
		return shape{oneOf: []string{refTo("URL"), refTo(c.nameOf(inner, of.Elem()))}, null: true}
	case of.Kind() == reflect.Pointer:
		return c.shapeOfType(f, of.Elem(), u)
	case of.Kind() == reflect.Struct:
		if u == newUse || u == putUse {
			u = changeUse
		}
		return shape{ref: c.nameOf(u, of)}
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
		return shape{kind: "array", attrs: []string{"items: " + refTo(c.nameOf(u, of.Elem()))}}
	case of.Kind() == reflect.Slice:
		element := field{Member: f.Member, key: f.key + "[]", validate: ofElements}
		items := c.shapeOfType(element, of.Elem(), u)
		if !isAnswer {
			s.attrs = bounds(own, "minItems", "maxItems")
			if items.rule != "" {
				s.rule = (&field{Member: f.Member, validate: ",dive," + ofElements}).rule()
			}
		}
		s.kind, s.attrs = "array", append(s.attrs, "items: {"+strings.Join(items.parts(), ", ")+"}")
		return s
	case f.Is("size") && isAnswer:
		return shape{kind: "string", attrs: []string{"examples: [256MiB, 1GiB]"}}
	case f.Is("size"):
		integer := append([]string{"type: integer"}, bounds(own, "minimum", "maximum")...)
		return shape{oneOf: []string{
			"{type: string, examples: [256MiB, 1GiB]}", "{" + strings.Join(integer, ", ") + "}",
		}}
	}
	switch of.Kind() {
	case reflect.Int, reflect.Int64:
		s.kind = "integer"
	case reflect.Float64:
		s.kind = "number"
	case reflect.Bool:
		s.kind = "boolean"
	case reflect.String:
		return c.shapeOfText(f, of, own, u)
	default:
		c.Fatalf("%s: no schema is known for %s", f.key, of)
	}
	if !isAnswer {
		s.attrs = bounds(own, "minimum", "maximum")
	}
	return s
}

// shapeOfText returns the schema of a text.
func (c schemaWriter) shapeOfText(f field, of reflect.Type, own string, u use) shape {
	s := shape{kind: "string", enum: enums[of]}
	if words, is := tag(own, "oneof"); is {
		s.enum = strings.Fields(words)
	}
	for name, ref := range refsByTag {
		if _, is := tag(own, name); is {
			return shape{ref: ref}
		}
	}
	if u == answerUse {
		return s
	}
	if _, is := tag(own, "target"); is {
		if !f.Is("empty") {
			return shape{ref: "URL"}
		}
		s.attrs = []string{fmt.Sprintf("maxLength: %d", job.MaxURL)}
	}
	for name, attr := range attrsByTag {
		if _, is := tag(own, name); is {
			s.attrs = append(s.attrs, attr)
			if strings.HasPrefix(attr, "pattern") {
				s.rule = (&field{Member: f.Member, validate: own}).rule()
			}
		}
	}
	s.attrs = append(s.attrs, bounds(own, "minLength", "maxLength")...)
	return s
}

// bounds returns the bounds in tags of the validator.
func bounds(tags, least, most string) (all []string) {
	if n, is := tag(tags, "min"); is {
		all = append(all, least+": "+n)
	}
	if n, is := tag(tags, "max"); is {
		all = append(all, most+": "+n)
	}
	return all
}
