package request

import (
	"bytes"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// Bounds of what is gathered from one request.
const (
	// MaxFieldErrors is how many faults are named.
	MaxFieldErrors = 100
	// maxEntries is how many names or elements are taken in. It is more than anything may have, so that who sends more
	// is refused in any case: headers take 5 B each.
	maxEntries = 8 << 10
)

// A decoder reads fields out of JSON that CheckJSON passed and gathers what is wrong with them. Its methods take the
// field's pointer and its value; after a fault they return the zero value.
type decoder struct {
	errors []job.FieldError
	// duplicateKey is the first name that stands twice in one of our objects: such a request is unreadable, because readers
	// differ on which of the two counts.
	duplicateKey string
}

// AddError notes one.
func (d *decoder) AddError(field, detail string) {
	if len(d.errors) < MaxFieldErrors {
		d.errors = append(d.errors, job.FieldError{Field: field, Detail: detail})
	}
}

// unknownField notes a member that is none of ours.
func (d *decoder) unknownField(at string, name []byte, what string) {
	d.AddError(job.JSONPointer(at, string(name)), "is not a field of "+what)
}

// problem is what came of the decoding and of the checks after it; nil when nothing is wrong. What the checks say of a
// field that could not even be read is left out.
func (d *decoder) problem(checked []job.FieldError) *response.Problem {
	if d.duplicateKey != "" {
		return response.NewProblem(http.StatusBadRequest, "duplicate key "+d.duplicateKey)
	}
	if len(d.errors)+len(checked) == 0 {
		return nil
	}
	all := d.errors[:len(d.errors):len(d.errors)]
	for _, c := range checked {
		if !slices.ContainsFunc(d.errors, func(f job.FieldError) bool { return f.Field == c.Field }) {
			all = append(all, c)
		}
	}
	if beyond := len(all) - MaxFieldErrors; beyond > 0 {
		all = append(all[:MaxFieldErrors:MaxFieldErrors], job.FieldError{Detail: fmt.Sprintf("and at least %d more", beyond)})
	}
	return response.Invalid(all...)
}

// object walks the members of an object, and notes a name that stands twice. Any other value is a fault.
func (d *decoder) object(at string, raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		if raw[0] != '{' {
			d.wrongType(at, raw, "an object")
			return
		}
		var few [24][]byte
		seen := few[:0]
		var many map[string]bool
		for name, value := range Members(raw) {
			twice := false
			switch {
			case len(many) > maxEntries:
			case many != nil:
				twice = many[string(name)]
				many[string(name)] = true
			case len(seen) == cap(seen):
				many = make(map[string]bool, 2*len(seen))
				for _, s := range seen {
					many[string(s)] = true
				}
				twice = many[string(name)]
				many[string(name)] = true
			default:
				for _, s := range seen {
					twice = twice || bytes.Equal(s, name)
				}
				seen = append(seen, name)
			}
			if twice && d.duplicateKey == "" {
				d.duplicateKey = job.JSONPointer(at, string(name))
			}
			if !yield(name, value) {
				return
			}
		}
	}
}

// wrongType notes a value of the wrong type.
func (d *decoder) wrongType(at string, raw []byte, wanted string) {
	d.AddError(at, "must be "+wanted+", not "+typeOf(raw))
}

// typeOf names the type of a JSON value.
func typeOf(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

func isNull(raw []byte) bool { return raw[0] == 'n' }

func isNumber(raw []byte) bool { return raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' }
