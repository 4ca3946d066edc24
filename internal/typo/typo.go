// Package typo names what a misspelt name was probably meant to be.
package typo

import (
	"iter"
	"strings"

	"github.com/agnivade/levenshtein"
)

// longest is the length of names that are compared, in bytes. No known name is longer.
const longest = 32

// Hint returns "; did you mean NAME?" for the closest name, or nothing if none is close.
func Hint(name string, known iter.Seq[string]) string {
	if best := Closest(name, known); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}

// Closest returns the known name that is the closest, or nothing if none is close. The case of letters and the signs
// between words do not count: runAt is as close to run_at as can be.
func Closest(name string, known iter.Seq[string]) string {
	if len(name) > longest {
		return ""
	}
	name = plain(name)
	best, distance := "", 1+min(2, (len(name)+1)/3) // two letters of five, one of two
	for k := range known {
		d := levenshtein.ComputeDistance(name, plain(k))
		if d < distance || d == distance && best != "" && k < best {
			best, distance = k, d
		}
	}
	return best
}

var signs = strings.NewReplacer("_", "", "-", "")

func plain(name string) string { return signs.Replace(strings.ToLower(name)) }
