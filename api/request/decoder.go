package request

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/typo"
	"github.com/ringback/ringback/job"
)

// Bounds of one request.
const (
	// MaxFieldErrors bounds the errors that are reported.
	MaxFieldErrors = 100
	// maxEntries bounds the members or elements that are read. No field may have so many, so a request beyond it is
	// refused anyway.
	maxEntries = 8 << 10
	// maxHints is the number of errors up to which the closest name is looked for: a batch has many objects.
	maxHints = 8
)

// A decoder reads fields from JSON that CheckJSON accepted, and collects their errors. Its methods take the field's
// JSON pointer and its value. After an error they return the zero value.
type decoder struct {
	errors []job.FieldError
	// duplicateKey is the JSON pointer of the first duplicate key. Such a request is refused as a whole, because
	// parsers differ on which value counts.
	duplicateKey string
	// hidesHeaders is set for a token that is shown [redacted] for headers that may be secrets.
	hidesHeaders bool
}

// AddError adds the error of a field.
func (d *decoder) AddError(field, detail string) {
	if len(d.errors) < MaxFieldErrors {
		d.errors = append(d.errors, job.FieldError{Field: field, Detail: detail})
	}
}

// unknownField adds the error of an unknown field.
func (d *decoder) unknownField(at string, name []byte, what string, known iter.Seq[string]) {
	hint := ""
	if len(d.errors) < maxHints {
		hint = typo.Hint(string(name), known)
	}
	d.AddError(job.JSONPointer(at, string(name)), "is not a field of "+what+hint)
}

// problem returns the problem of the decoder's errors and of the checks' errors; nil when there are none. Errors of
// checks are left out for fields that could not be read.
func (d *decoder) problem(checked []job.FieldError) *response.Problem {
	if d.duplicateKey != "" {
		return response.NewProblem(response.InvalidJSON, "duplicate key "+d.duplicateKey)
	}
	if len(d.errors)+len(checked) == 0 {
		return nil
	}
	all := slices.Clip(d.errors)
	for _, c := range checked {
		if !slices.ContainsFunc(d.errors, func(f job.FieldError) bool { return f.Field == c.Field }) {
			all = append(all, c)
		}
	}
	if beyond := len(all) - MaxFieldErrors; beyond > 0 {
		all = append(all[:MaxFieldErrors:MaxFieldErrors],
			job.FieldError{Detail: fmt.Sprintf("and at least %d more", beyond)})
	}
	return response.Invalid(all...)
}

// object iterates over the members of an object and notes duplicate keys. Any other value is an error.
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

// wrongType adds the error of a value of the wrong type.
func (d *decoder) wrongType(at string, raw []byte, wanted string) {
	d.AddError(at, "must be "+wanted+", not "+TypeOf(raw))
}

func isNull(raw []byte) bool { return raw[0] == 'n' }

func isNumber(raw []byte) bool { return raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' }
