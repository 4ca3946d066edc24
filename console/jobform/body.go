package jobform

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/ringback/ringback/client"
)

// maxEditable bounds the bodies that a form has as text: what is longer is not edited in a browser.
const maxEditable = 64 << 10

// defaultTypes are the content types that the API gives to bodies without one.
var defaultTypes = map[string]string{
	AsJSON: "application/json", AsText: "text/plain; charset=utf-8",
	AsBase64: "application/octet-stream",
}

// setBody sets the fields of a body: as JSON, as text or as base64. A body that is too long, or that a browser would
// change, is kept.
func (f Form) setBody(body []byte, contentType string) {
	as := AsKept
	switch text := string(body); {
	case len(body) == 0 && contentType == "":
		as = AsJSON
	case len(body) == 0, text == Redacted: // it is empty, or the reader may not see it
	case len(body) > maxEditable:
	case !isBrowserSafe(text), strings.TrimSpace(text) == "": // a text of spaces is none
		if len(body) <= maxEditable/2 {
			as = AsBase64
			f[Body] = base64.StdEncoding.EncodeToString(body)
		}
	case json.Valid(body) && isJSON(contentType) && text == strings.TrimSpace(text): // spaces around JSON would be lost
		as, f[Body] = AsJSON, text
	default:
		as, f[Body] = AsText, text
	}
	f[BodyAs] = as
	if as != AsKept && contentType != defaultTypes[as] {
		f.set(ContentType, contentType)
	}
}

// isJSON reports whether a content type is that of JSON; none is.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	media = strings.TrimSpace(media)
	return media == "" || media == "application/json" || strings.HasSuffix(media, "+json")
}

// isBrowserSafe reports whether a text comes back from a browser as it was: line ends become CRLF, and other controls
// may be lost.
func isBrowserSafe(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == utf8.RuneError || r == 0xfeff
	})
}

// setPayload sets the fields of a body as the client has those of schedules. A text that a browser would change is in
// base64, unless only its line ends are.
func (f Form) setPayload(body any, contentType string) {
	switch b := body.(type) {
	case nil:
		f[BodyAs] = AsJSON
		f.set(ContentType, contentType)
	case json.RawMessage:
		f[BodyAs], f[Body] = AsJSON, string(b)
		f.set(ContentType, contentType)
	case client.Text:
		if !isBrowserSafe(lines(string(b))) {
			f.setPayload([]byte(b), cmp.Or(contentType, "text/plain; charset=utf-8"))
			return
		}
		f[BodyAs], f[Body] = AsText, string(b)
		f.set(ContentType, contentType)
	case []byte:
		f[BodyAs], f[Body] = AsBase64, base64.StdEncoding.EncodeToString(b)
		f.set(ContentType, contentType)
	}
}

// body returns the body that the form describes; nil: none, or it is kept.
func (p *parser) body() any {
	text := p.form[Body]
	if strings.TrimSpace(text) == "" {
		return nil
	}
	switch p.form[BodyAs] {
	case AsKept:
		p.fail(Body, "is not what the job has: choose what kind of body it is")
		return nil
	case AsText:
		return client.Text(text)
	case AsBase64:
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			p.fail(Body, "is not base64: choose another kind of body, or mend it")
			return nil
		}
		return raw
	default:
		if !json.Valid([]byte(text)) {
			p.fail(Body, "is not JSON"+whereNotJSON(text)+": mend it, or send it as text")
			return nil
		}
		return json.RawMessage(text)
	}
}

// whereNotJSON says in which line a text stops being JSON.
func whereNotJSON(text string) string {
	var raw json.RawMessage
	err := json.Unmarshal([]byte(text), &raw)
	at, ok := syntaxOffset(err)
	if !ok {
		return ""
	}
	at = min(at, len(text))
	return " in line " + itoa(1+strings.Count(text[:at], "\n"))
}
