package utf8text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrim_SkipsAMarkAndRefusesUTF16(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\xef\xbb\xbf": "", "\xef\xbb\xbf{}": "{}", "\xef\xbb\xbf\xef\xbb\xbf{}": "\xef\xbb\xbf{}", "{}": "{}",
		"\n\xef\xbb\xbf":   "\n\xef\xbb\xbf",
		"\x00\x01\x00\x02": "\x00\x01\x00\x02", "a\x00b": "a\x00b", "\xff": "\xff", "PK\x03\x04": "PK\x03\x04",
		"1\x00\x00\x00": "1\x00\x00\x00",
	} {
		got, err := Trim([]byte(text))
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, string(got))
	}
	for _, text := range []string{
		"\xff\xfe{\x00}\x00", "\xfe\xff\x00{\x00}", "{\x00}\x00", "\x00{\x00}", "\xff\xfe", "-\x00-\x00", "\n\x00{\x00",
	} {
		got, err := Trim([]byte(text))
		require.ErrorIs(t, err, ErrUTF16, "%q", text)
		require.Equal(t, text, string(got))
	}
}
