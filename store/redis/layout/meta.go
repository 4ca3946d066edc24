package layout

import (
	"fmt"
	"strconv"

	"github.com/ringback/ringback/job"
)

// CheckMeta checks the fields version and shards of <prefix>:meta, and returns the number of shards. want is the number
// that was set; zero: none was.
func CheckMeta(version, shards string, want int) (int, error) {
	v, _ := strconv.Atoi(version) // what is no number is no version
	n, _ := strconv.Atoi(shards)
	switch {
	case v != Version:
		return 0,
			fmt.Errorf("redis: the data have schema version %s, this program requires version %d", version, Version)
	case n < 1 || n > job.MaxShards:
		return 0, fmt.Errorf("redis: the data have %q shards, want 1 to %d", shards, job.MaxShards)
	case want != 0 && want != n:
		return 0,
			fmt.Errorf("redis: the data have %d shards, not %d: the number is fixed when they are laid out", n, want)
	}
	return n, nil
}
