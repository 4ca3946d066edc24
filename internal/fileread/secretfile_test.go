package fileread

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead_SkipsAByteOrderMark(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	for content, want := range map[string]string{"token\n": "token", "\xef\xbb\xbf token\r\n": "token"} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		text, _, err := ReadSecret(file)
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
	for content, want := range map[string]string{"\xff\xfet\x00": "is in UTF-16", "\xef\xbb\xbf\n": "is empty"} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, _, err := ReadSecret(file)
		require.ErrorContains(t, err, file+" "+want)
	}
}
