package web

import (
	"bytes"
	"fmt"

	"github.com/ringback/ringback/internal/utf8text"
)

// showInvisible shows the invisible characters of the texts of a page as escapes. What is sent back as it is,
// attributes and the contents of textareas, keeps its characters, as references. html/template has escaped < and > in
// both.
func showInvisible(html []byte) []byte {
	if !utf8text.HasInvisible(string(html)) {
		return html
	}
	var b bytes.Buffer
	for written := false; len(html) > 0; written = !written {
		end, with := bytes.IndexByte(html, '<'), utf8text.EscapeInvisible
		if written {
			end, with = endOfTag(html), reference
		}
		if end < 0 {
			end = len(html)
		}
		b.WriteString(utf8text.ReplaceInvisible(string(html[:end]), with))
		html = html[end:]
	}
	return b.Bytes()
}

// endOfTag returns the end of the tag that a text begins with, for a textarea of its content; -1: that of the text.
func endOfTag(html []byte) int {
	end := []byte(">")
	if bytes.HasPrefix(html, []byte("<textarea")) {
		end = []byte("</textarea>")
	}
	at := bytes.Index(html, end)
	if at < 0 {
		return -1
	}
	return at + len(end)
}

// reference returns a character as a reference in HTML.
func reference(r rune) string { return fmt.Sprintf("&#x%x;", r) }
