package conn

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReuseTime_IsShorterThanAnnounced(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   time.Duration
	}{
		{nil, idleTimeout},
		{[]string{"timeout=5"}, 4 * time.Second}, // of Node.js
		{[]string{"timeout=5, max=100"}, 4 * time.Second},
		{[]string{"max=100,Timeout = 5"}, 4 * time.Second},
		{[]string{`timeout="5"`}, 4 * time.Second},
		{[]string{"timeout=1"}, time.Second / 2},
		{[]string{"timeout=0"}, 0},
		{[]string{"timeout=60", "timeout=20"}, 19 * time.Second},
		{[]string{"timeout=91"}, idleTimeout},
		{[]string{"timeout=4294967295"}, idleTimeout},
		{[]string{"timeout=99999999999999999999", "timeout=-1", "timeout=x", "timeout", "max=1", ""}, idleTimeout},
	} {
		require.Equal(t, c.want, reuseTime(http.Header{"Keep-Alive": c.values}), c.values)
	}
}
