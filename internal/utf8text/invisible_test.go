package utf8text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/utf8text"
)

func TestReplace_ShowsWhatIsInvisible(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"plain é 漢\u3000字 \u00a0\n\r\t": "plain é 漢\u3000字 \u00a0\n\r\t",
		"pay\u202egpj.exe":              `pay\u202egpj.exe`,
		"\u2066a\u2069 \u200fb\u061c":   `\u2066a\u2069 \u200fb\u061c`,
		"a\u200bb\ufeffc\u00ad\u2060":   `a\u200bb\ufeffc\u00ad\u2060`,
		"\x00\x1b[31m\x7f\u009b":        `\u0000\u001b[31m\u007f\u009b`,
		"a\U000e0041\u3164\u2028":       `a\U000e0041\u3164\u2028`,
		"\xff\u202e\xfe":                "\xff\\u202e\xfe",
		"a\u200db\ufe0f":                `a\u200db\ufe0f`,
		"می\u200cخواهم 👩\u200d💻❤\ufe0f": "می\u200cخواهم 👩\u200d💻❤\ufe0f",
		"é\u200b\u200d\u200d":           `é\u200b\u200d\u200d`,
		"é\u200d\u200d\u200c":           "é\u200d" + `\u200d\u200c`,
	} {
		require.Equal(t, want, utf8text.ReplaceInvisible(text, utf8text.EscapeInvisible))
		require.Equal(t, want != text, utf8text.HasInvisible(text), "%q", text)
	}
}
