package main

import (
	"fmt"
	"strings"

	"github.com/ringback/ringback/job/units"
)

// byteSize is a number of bytes: "262144", "256KiB", "1MiB".
type byteSize int64

// UnmarshalText parses a flag's size.
func (b *byteSize) UnmarshalText(text []byte) error {
	number := strings.ReplaceAll(string(text), " ", "")
	if strings.Trim(number, "0123456789") == "" {
		number += "B"
	}
	n, err := units.ParseSize(number)
	if err != nil {
		return fmt.Errorf("%q is not a size: use bytes, or a unit as in 256KiB or 1MiB", text)
	}
	*b = byteSize(n)
	return nil
}

// String returns the size in the largest unit that divides it.
func (b byteSize) String() string { return units.FormatSize(int64(b)) }
