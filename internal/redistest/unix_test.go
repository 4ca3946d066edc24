package redistest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

func TestServer_ListensOnASocketWithALongTestName(t *testing.T) {
	t.Parallel()
	t.Run(strings.Repeat("long", 20), func(t *testing.T) {
		s := redistest.StartUnix(t)
		require.Equal(t, "unix://"+s.Addr(), s.URL())
		require.NoError(t, dial(t, s).Ping(t.Context()).Err())
		s.Kill()
		s.Restart()
		require.NoError(t, dial(t, s).Ping(t.Context()).Err())
	})
}
