package cli

import (
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"
)

// checkEmpty returns an error for the first flag or argument of a command that is given without a value, as an unset
// variable of a shell does: without it a filter selects more, and a path names something else. A body may be empty.
func checkEmpty(command *kong.Node) error {
	for _, v := range valuesOf(command) {
		if v.Set && !v.HasDefault && v.Name != "data" && hasEmpty(reflect.Indirect(v.Target)) {
			return fmt.Errorf("%s: is empty; leave it out, or give a value", flagName(v))
		}
	}
	return nil
}

// hasEmpty reports whether a value is an empty text, or a list or a map without items or with one that is empty.
func hasEmpty(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.String, reflect.Map:
		return value.Len() == 0
	case reflect.Slice:
		for i := range value.Len() {
			if hasEmpty(value.Index(i)) {
				return true
			}
		}
		return value.Len() == 0
	}
	return false
}
