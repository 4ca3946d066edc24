package jobpages

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode"
	"unicode/utf8"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// bodyView is a body as a page shows it.
type bodyView struct {
	Text string
	// Note says what the text is, if it is not the body itself.
	Note string
	// Cut reports whether the text is the beginning of the body only.
	Cut bool
}

// maxDepth bounds the depth of JSON that is indented: indentation grows with the square of the depth.
const maxDepth = 40

// showBody returns a body as a page shows it: JSON is indented with its numbers as they are, bytes are in base64. At
// most 32 KiB of the body are shown.
func showBody(body []byte) bodyView {
	size := words.Bytes(int64(len(body)))
	if shown := beginning(body); len(shown) < len(body) {
		if isText(shown) {
			return bodyView{
				Text: string(shown),
				Note: "The first " + words.Bytes(int64(len(shown))) + " of " + size + ".", Cut: true,
			}
		}
		raw := body[:min(len(body), maxShownBody/4*3)]
		return bodyView{
			Text: base64.StdEncoding.EncodeToString(raw),
			Note: "The first " + words.Bytes(int64(len(raw))) + " of " + size + ", in base64.", Cut: true,
		}
	}
	if !isText(body) {
		return bodyView{Text: base64.StdEncoding.EncodeToString(body), Note: size + " that are not text, in base64."}
	}
	if json.Valid(body) && depth(body) <= maxDepth {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, body, "", "  "); err == nil && len(beginning(pretty.Bytes())) == pretty.Len() {
			if v := (bodyView{Text: pretty.String()}); v.Text == string(body) {
				return v
			}
			return bodyView{
				Text: pretty.String(),
				Note: "Indented to be read: it is sent as " + size + " without these spaces.",
			}
		}
	}
	return bodyView{Text: string(body)}
}

// beginning returns the part of a body that a page shows: 32 KiB, or less if it has many characters that HTML escapes.
// It does not end within a character of UTF-8.
func beginning(body []byte) []byte {
	room := maxShownBody * 3 / 2
	end := min(len(body), maxShownBody)
	for i, c := range body[:end] {
		if room -= escapedSize(c); room < 0 {
			end = i
			break
		}
	}
	if end == len(body) {
		return body
	}
	for back := 1; back <= utf8.UTFMax && back <= end; back++ {
		if utf8.RuneStart(body[end-back]) {
			if !utf8.FullRune(body[end-back : end]) {
				end -= back
			}
			break
		}
	}
	return body[:end]
}

// escapedSize returns the number of bytes of a byte in HTML.
func escapedSize(c byte) int {
	switch c {
	case '"', '\'', '&', '<', '>', '+':
		return len("&#34;")
	default:
		return 1
	}
}

// isText reports whether a text can be shown as it is.
func isText(body []byte) bool {
	return utf8.Valid(body) && !bytes.ContainsFunc(body, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' || r == utf8.RuneError
	})
}

// depth returns how deep objects and arrays of valid JSON are nested.
func depth(text []byte) int {
	deepest, now, inString := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// answerBody returns the body of an attempt's answer.
func answerBody(a *client.Attempt) bodyView {
	if len(a.ResponseBodyBase64) > 0 {
		return showBody(a.ResponseBodyBase64)
	}
	v := showBody([]byte(a.ResponseBody))
	if v.Note != "" && isText([]byte(a.ResponseBody)) {
		v.Note = "Indented to be read."
	}
	return v
}
