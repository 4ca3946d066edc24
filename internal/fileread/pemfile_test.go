package fileread

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/utf8text"
)

func TestRead_LeavesOutNoBlock(t *testing.T) {
	const block = "-----BEGIN X-----\nAAAA\n-----END X-----\n"
	for text, want := range map[string]string{
		"": "", "no block": "no block", block + block: block + block,
		"\xef\xbb\xbf" + block: block, "\xef\xbb\xbf# a note\n" + block: "# a note\n" + block,
	} {
		file := filepath.Join(t.TempDir(), "x.pem")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		got, err := ReadPEM(file)
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, string(got))
	}
	for text, want := range map[string]error{
		block + "\xef\xbb\xbf" + block: errUnreadable, block + "  " + block: errUnreadable,
		"-----BEGIN X-----\n!\n-----END X-----\n" + block: errUnreadable,
		block + "-----BEGIN X-----\nAA":                   errUnreadable,
		"\xff\xfe-\x00":                                   utf8text.ErrUTF16, "-\x00-\x00": utf8text.ErrUTF16,
	} {
		file := filepath.Join(t.TempDir(), "x.pem")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ReadPEM(file)
		require.ErrorIs(t, err, want, "%q", text)
		require.ErrorContains(t, err, file)
	}
	_, err := KeyPair(filepath.Join(t.TempDir(), "none"), "")
	require.ErrorIs(t, err, os.ErrNotExist)
}
