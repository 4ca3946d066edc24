package transfer

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Bounds are low in tests, so that few jobs take several sections and pages; but not if a test is told to take many
// jobs.
func init() {
	if _, set := os.LookupEnv("RINGBACK_TRANSFER_JOBS"); !set {
		sectionLines, listPage, maxUnreadable = 32, 25, 30
	}
}

// derived are fields of jobs that are not stored.
var derived = map[string]bool{"Jitter": true, "MaxAge": true, "MaxAgeDerived": true, "GiveUpOn": true, "Success": true}

// setAll gives each field of a struct, and of those in it, a value other than zero.
func setAll(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		setAll(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		setAll(value)
		v.SetMapIndex(reflect.ValueOf("X-Name"), value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setAll(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_123).UTC()))
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); !derived[f.Name] || v.Type() == reflect.TypeFor[jobLine]() {
				setAll(v.Field(i))
			}
		}
	default:
		panic("a field of kind " + v.Kind().String())
	}
}

// A field that is added to jobs must be in exports.
func TestJobLine_HasEveryField(t *testing.T) {
	var l jobLine
	setAll(reflect.ValueOf(&l).Elem())
	l.Spec.Body, l.History = nil, nil
	text, err := encodeLine(&line{Job: &l})
	require.NoError(t, err)
	got, err := parseLine(1, text)
	require.NoError(t, err)
	require.Equal(t, &l, got.Job)
}
