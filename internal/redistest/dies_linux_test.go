package redistest_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// dying names the environment's wish that the test binary starts a server and dies of it.
const dying = "REDISTEST_DYING"

func TestServer_EndsWithAPanickingTestBinary(t *testing.T) {
	if os.Getenv(dying) != "" {
		s := redistest.Start(t)
		_, _ = os.Stdout.WriteString("addr " + s.Addr() + "\n") // the parent sees that it is missing
		go func() { panic("as a test's goroutine may") }()
		select {}
	}
	redistest.Binary(t)
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	again.Env = append(os.Environ(), dying+"=1", "TMPDIR="+t.TempDir())
	out, err := again.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, again.Start())
	addr := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found, ok := strings.CutPrefix(lines.Text(), "addr "); ok {
			addr = found
		}
	}
	require.Error(t, again.Wait(), "it did not die")
	require.NotEmpty(t, addr)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close() // only to see that the server answers
		}
		return err != nil
	}, time.Minute, 5*time.Millisecond)
}
