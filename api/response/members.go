package response

import (
	"encoding/json"
	"reflect"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
)

// Members writes the members of the struct that v points to: see job.Member. Secrets are redacted.
func (o *Buffer) Members(v any) {
	value := reflect.ValueOf(v)
	planOf(value.Type().Elem()).write(o, value.UnsafePointer())
}

// A plan writes the members of a struct. It reads fields at their offsets: with reflect a list of jobs would take half
// as long again.
type plan []plannedMember

// plannedMember is a member of a plan.
type plannedMember struct {
	valueWriter

	key    string // the name as JSON, and a colon
	offset uintptr
	always bool
	or     string
}

// A valueWriter writes the values of a type, which are at an address.
type valueWriter struct {
	isUnset func(at unsafe.Pointer) bool // null, or left out
	write   func(o *Buffer, at unsafe.Pointer)
}

var plans sync.Map // of plan, by reflect.Type

// planOf returns the plan of a struct.
func planOf(t reflect.Type) plan {
	if known, ok := plans.Load(t); ok {
		p, _ := known.(plan)
		return p
	}
	var p plan
	for _, m := range job.MembersOf(t).All {
		p = append(p, plannedMember{writerOf(m.Type, &m), `"` + m.Name + `":`, m.Offset, m.Is("always"), m.Or()})
	}
	plans.Store(t, p)
	return p
}

// write writes all members of the struct at an address.
func (p plan) write(o *Buffer, at unsafe.Pointer) {
	for i := range p {
		m := &p[i]
		field := unsafe.Add(at, m.offset)
		o.next()
		o.b = append(o.b, m.key...)
		switch {
		case m.always, !m.isUnset(field):
			m.write(o, field)
		case m.or != "":
			o.quote(m.or)
		default:
			o.b = append(o.b, "null"...)
		}
	}
}

// writeSet writes the members that are set.
func (p plan) writeSet(o *Buffer, at unsafe.Pointer) {
	for i := range p {
		m := &p[i]
		if field := unsafe.Add(at, m.offset); !m.isUnset(field) {
			o.next()
			o.b = append(o.b, m.key...)
			m.write(o, field)
		}
	}
}

func writerFor[T any](isUnset func(v *T) bool, write func(o *Buffer, v *T)) valueWriter {
	return valueWriter{
		func(at unsafe.Pointer) bool { return isUnset((*T)(at)) },
		func(o *Buffer, at unsafe.Pointer) { write(o, (*T)(at)) },
	}
}

func isZero[T comparable](v *T) bool { return *v == *new(T) }

func isNil[T any](v *[]T) bool { return *v == nil }

func isEmpty[T any](v *map[string]T) bool { return len(*v) == 0 }

// valueWriters are the writers of types that have a form of their own.
var valueWriters = map[reflect.Type]valueWriter{
	reflect.TypeFor[time.Time]():     writerFor((*time.Time).IsZero, func(o *Buffer, v *time.Time) { o.time(*v) }),
	reflect.TypeFor[time.Duration](): writerFor(isZero, func(o *Buffer, v *time.Duration) { o.duration(*v) }),
	reflect.TypeFor[policy.Rate](): writerFor(isZero,
		func(o *Buffer, v *policy.Rate) { o.quote(units.FormatRate(*v)) }),
	reflect.TypeFor[policy.Sealed]():     writerFor(isZero, func(o *Buffer, _ *policy.Sealed) { o.quote(Redacted) }),
	reflect.TypeFor[json.RawMessage]():   writerFor(isNil, func(o *Buffer, v *[]byte) { o.b = append(o.b, *v...) }),
	reflect.TypeFor[map[string]string](): writerFor(isEmpty, func(o *Buffer, v *map[string]string) { o.labels(*v) }),
	reflect.TypeFor[map[string][]string](): writerFor(isEmpty,
		func(o *Buffer, v *map[string][]string) { o.headers(*v) }),
	reflect.TypeFor[policy.Ladder](): writerFor(isNil, func(o *Buffer, v *[]time.Duration) { o.durations(*v) }),
}

// writerOf returns the writer of a member, or of what it points to.
func writerOf(t reflect.Type, m *job.Member) valueWriter {
	if w, ok := valueWriters[t]; ok {
		return w
	}
	switch kind := t.Kind(); {
	case kind == reflect.Pointer:
		to := writerOf(t.Elem(), m)
		return writerFor(isZero, func(o *Buffer, v *unsafe.Pointer) { to.write(o, *v) })
	case kind == reflect.String:
		return writerFor(isZero, func(o *Buffer, v *string) { o.quote(*v) })
	case kind == reflect.Bool:
		return writerFor(isZero, func(o *Buffer, v *bool) { o.b = strconv.AppendBool(o.b, *v) })
	case kind == reflect.Float64:
		return writerFor(isZero, func(o *Buffer, v *float64) { o.b = strconv.AppendFloat(o.b, *v, 'g', -1, 64) })
	case kind == reflect.Int64 && m.Is("size"):
		return writerFor(isZero, func(o *Buffer, v *int64) { o.quote(units.FormatSize(*v)) })
	case kind == reflect.Int64:
		return writerFor(isZero, func(o *Buffer, v *int64) { o.b = strconv.AppendInt(o.b, *v, 10) })
	case kind == reflect.Int:
		return writerFor(isZero, func(o *Buffer, v *int) { o.b = strconv.AppendInt(o.b, int64(*v), 10) })
	case kind == reflect.Slice && t.Elem().Kind() == reflect.String:
		return writerFor(isNil, func(o *Buffer, v *[]string) { o.textArray(*v) })
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return structsWriter(t)
	case kind == reflect.Struct:
		return valueWriter{
			func(at unsafe.Pointer) bool { return reflect.NewAt(t, at).Elem().IsZero() },
			func(o *Buffer, at unsafe.Pointer) { o.object(t, at) },
		}
	}
	panic("response: no JSON is known for " + t.String())
}

// structsWriter returns the writer of a slice of structs.
func structsWriter(t reflect.Type) valueWriter {
	return valueWriter{
		func(at unsafe.Pointer) bool { return reflect.NewAt(t, at).Elem().IsNil() },
		func(o *Buffer, at unsafe.Pointer) {
			o.b = append(o.b, '[')
			for _, element := range reflect.NewAt(t, at).Elem().Seq2() {
				o.next()
				o.object(t.Elem(), element.Addr().UnsafePointer())
			}
			o.CloseArray()
		},
	}
}

// object writes a struct as an object.
func (o *Buffer) object(t reflect.Type, at unsafe.Pointer) {
	o.b = append(o.b, '{')
	planOf(t).write(o, at)
	o.Close()
}
