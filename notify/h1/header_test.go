package h1

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// The end of the final response's header is the same as for net/http: lines of a body do not count, lines after an
// interim response do.
func FuzzHeaderLimit(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1  103 x\r\nA: b\r\n\r\nHTTP/1.1   200\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n\r\n",
		"HTTP/1.0 199 \nA: b\n c\n\nHTTP/1.1 000 x\n\n",
		"HTTP/1.1 1+1 \n\n", "HTTP/1.1 +10 x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n",
	} {
		f.Add([]byte(text), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, step uint8) {
		var limit HeaderLimit
		read, reader := 0, iotest.OneByteReader(bytes.NewReader(text))
		if step > 1 {
			reader = bytes.NewReader(text)
		}
		part := make([]byte, max(step, 1))
		for !limit.done {
			n, err := reader.Read(part)
			if n > 0 && limit.Read(part[:n]) != nil {
				return // it is too large
			}
			if read += n; err != nil {
				break
			}
		}
		whole := bytes.NewReader(text)
		in := bufio.NewReaderSize(whole, max(len(text), 16))
		for {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				return // whatever was counted of it, no response comes of it
			}
			_ = resp.Body.Close()
			if resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == http.StatusSwitchingProtocols {
				break
			}
		}
		require.True(t, limit.done)
	})
}
