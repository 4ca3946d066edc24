package output

import "strings"

// barWidth is the length of a Bar between its brackets, in characters.
const barWidth = 30

// Bar returns a picture of the share that done has of total, which is positive.
func Bar(done, total int64) string {
	full := int(min(done, total) * barWidth / total)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "]"
}
