package layout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

// limits.lua parses these lines. Data with other ones need another Version.
func TestFormatLimits_WritesTheFormOfItsVersion(t *testing.T) {
	p := policy.Limits{
		Paused: true, Ordered: true, Concurrency: 5, Rate: policy.Rate{Starts: 10, Per: time.Second},
		Deliver:       policy.DeliverPull,
		KeepDelivered: policy.Retention{For: new(time.Hour), Max: new(int64(1)), MaxBytes: new(int64(2))},
		KeepDead:      policy.Retention{For: new(time.Minute), Max: new(int64(3)), MaxBytes: new(int64(4))},
		IDWindow:      new(24 * time.Hour),
	}
	require.Equal(t, []any{7, "9 3 5 3600000 1 2 60000 3 4 86400000 10 1000 1", "3 5 10 1000"},
		[]any{Version, FormatLimits(9, p), FormatLaneLimits(p)})
}
