package request

import (
	"reflect"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// headersType is the type of headers, which are merged into the stored ones.
var headersType = reflect.TypeFor[map[string][]string]()

// A source is what a PUT or a PATCH merges into: a struct as it is stored. Without a merge, which a PATCH has, only
// secrets are kept.
type source struct {
	stored reflect.Value
	merge  bool
}

// of returns the source of a member.
func (s source) of(m *job.Member) source { return source{m.Of(s.stored), s.merge} }

// readNew reads an object into a new struct, which begins as that of the source if there is one and it is merged.
func readNew[T any](d *decoder, at string, raw []byte, what string, from source) *T {
	if raw[0] != '{' {
		d.wrongType(at, raw, "an object")
		return nil
	}
	to, stored := new(T), new(T)
	if from.stored.IsValid() && !from.stored.IsNil() {
		stored, _ = reflect.TypeAssert[*T](from.stored)
		if from.merge {
			*to = *stored
		}
	}
	d.readMembers(at, raw, what, reflect.ValueOf(to).Elem(), source{reflect.ValueOf(stored).Elem(), from.merge}, nil)
	return to
}

// readMembers reads an object into a struct: see job.Member. Members in special are read by their own readers. Headers
// are merged into those of the source.
func (d *decoder) readMembers(at string, raw []byte, what string, to reflect.Value, from source, special fields) {
	members := job.MembersOf(to.Type())
	var headers headerForm
	for name, value := range d.object(at, raw) {
		field := at + "/" + string(name)
		m := members.Named(string(name))
		switch read := special[string(name)]; {
		case read != nil:
			read(field, value)
		case m == nil || m.Is("answer"):
			d.unknownField(at, name, what, members.Settable)
		case m.Type == headersType:
			headers.reader(d)(field, value)
		default:
			d.readMember(m, field, value, m.Of(to), from.of(m))
		}
	}
	if m := members.Named("headers"); m != nil {
		url := members.Named("url")
		stored, _ := reflect.TypeAssert[map[string][]string](m.Of(from.stored))
		headers.moved = job.ChangesOrigin(url.Of(from.stored).String(), url.Of(to).String())
		m.Of(to).Set(reflect.ValueOf(headers.mergeInto(d, at+"/headers", stored, from.merge)))
	}
}

// readMember reads a member. Null sets the zero value, unless the member has the option default.
func (d *decoder) readMember(m *job.Member, at string, raw []byte, to reflect.Value, from source) {
	if isNull(raw) {
		if !m.Is("default") {
			to.SetZero()
		}
		return
	}
	switch to := to.Addr().Interface().(type) {
	case **policy.Callback:
		*to = d.callback(at, raw, from)
	case **policy.Backlog:
		*to = readNew[policy.Backlog](d, at, raw, m.Name, from)
	case **policy.ClientCert:
		stored, _ := reflect.TypeAssert[*policy.ClientCert](from.stored)
		*to = d.certificate(at, raw, stored, from.merge)
	case *time.Duration:
		*to = d.duration(at, raw)
		if !m.Is("zero") {
			*to = outOfRangeIfZero(*to)
		}
	case *time.Time:
		*to = d.time(at, raw)
	case *policy.Rate:
		*to = d.rate(at, raw)
	case *policy.Ladder:
		*to = d.ladder(at, raw)
	case *map[string]string:
		*to = d.labels(at, raw)
	case *map[string][]string:
		*to = d.headers(at, raw)
	case **time.Duration:
		*to = new(d.duration(at, raw))
	case **float64:
		*to = new(d.number(at, raw))
	case **int:
		*to = new(d.count(at, raw))
	case **int64:
		*to = new(d.whole(m, at, raw))
	case *int:
		*to = outOfRangeIfZero(d.count(at, raw))
	case *int64:
		*to = outOfRangeIfZero(d.whole(m, at, raw))
	case *bool:
		*to = d.boolean(at, raw)
	default:
		d.readKind(m, at, raw, reflect.ValueOf(to).Elem(), from)
	}
}

// readKind reads a member of a type that only its kind says how to read.
func (d *decoder) readKind(m *job.Member, at string, raw []byte, to reflect.Value, from source) {
	switch to.Kind() {
	case reflect.String:
		if m.Is("empty") {
			to.SetString(d.text(at, raw))
		} else {
			to.SetString(d.name(at, raw))
		}
	case reflect.Slice:
		to.Set(reflect.ValueOf(d.texts(at, raw)).Convert(to.Type()))
	case reflect.Struct:
		d.readMembers(at, raw, m.Name, to, from, nil)
	default:
		panic("request: no JSON is known for " + to.Type().String())
	}
}

// whole reads a whole number, or a size.
func (d *decoder) whole(m *job.Member, at string, raw []byte) int64 {
	if m.Is("size") {
		return d.size(at, raw)
	}
	return d.integer(at, raw)
}
