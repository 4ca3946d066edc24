package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizes are the units of sizes, largest first.
var sizes = [...]struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseSize parses a number of bytes with a unit, B, KiB, MiB, GiB or TiB: "256MiB", "1GiB", "512B".
func ParseSize(text string) (int64, error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	number, unit := text[:digits], text[digits:]
	for _, s := range sizes {
		if s.name != unit || number == "" {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > math.MaxInt64/s.bytes {
			return 0, fmt.Errorf("is larger than %d bytes", int64(math.MaxInt64))
		}
		return n * s.bytes, nil
	}
	return 0, fmt.Errorf("is not a size such as 256MiB, 1GiB or 512B")
}

// FormatSize formats a number of bytes for ParseSize, in the largest unit without a remainder.
func FormatSize(bytes int64) string {
	for _, s := range sizes {
		if bytes != 0 && bytes%s.bytes == 0 {
			return strconv.FormatInt(bytes/s.bytes, 10) + s.name
		}
	}
	return "0B"
}
