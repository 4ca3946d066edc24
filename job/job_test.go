package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

func TestMillis_TruncatesToWholeMilliseconds(t *testing.T) {
	require.True(t, job.Millis(time.Time{}).IsZero())
	at := time.Date(2026, 3, 1, 14, 0, 0, 123_999_999, time.FixedZone("UTC+2", 2*3600))
	require.Equal(t, time.Date(2026, 3, 1, 12, 0, 0, 123_000_000, time.UTC), job.Millis(at))
}
