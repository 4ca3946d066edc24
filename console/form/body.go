package form

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The API has a body in one of the members body, body_text and body_base64. A form has it in a field body, one that
// says how it is written, body_as, and one with its content type. The value of all three is an object of what the API
// has: the body, and the content type unless it is the default.

// How a body is written: texts of body_as.
const (
	AsJSON   = "json"
	AsText   = "text"
	asBase64 = "base64"
	// AsKept stands for the body that is stored: the field body is empty.
	AsKept = "kept"
)

// Redacted is what the API shows of secrets, and of bodies to those who may not read them.
const Redacted = "[redacted]"

// maxEditable bounds the bodies that a form has as text, in bytes: what is longer is not edited in a browser.
const maxEditable = 64 << 10

// bodyMembers are the members with a body and how these are written.
var bodyMembers = map[string]string{"body": AsJSON, "body_text": AsText, "body_base64": asBase64}

// defaultTypes are the content types that the API gives to bodies without one.
var defaultTypes = map[string]string{
	AsJSON: "application/json", AsText: "text/plain; charset=utf-8", asBase64: "application/octet-stream",
}

// bodyIn returns the value of the body of a job; nil: it has none. In a job that the API has registered null is a body
// if there is a content type; in that of a schedule, which lacks what is not set, it always is.
func bodyIn(job Values) json.RawMessage {
	value, contentType := make(Values), job["content_type"]
	for name := range bodyMembers {
		if raw := job[name]; !isNull(raw) {
			value[name] = raw
		}
	}
	if len(value) == 0 && job["body"] != nil && (job["body_text"] == nil || !isNull(contentType)) {
		value["body"] = null
	}
	if !isNull(contentType) {
		value["content_type"] = contentType
		for name, as := range bodyMembers {
			if value[name] != nil && unquote(contentType) == defaultTypes[as] {
				delete(value, "content_type")
			}
		}
	}
	if len(value) == 0 {
		return nil
	}
	return objectOf(value)
}

// body are the texts of a body.
type body struct{ text, as, contentType string }

// bodyOf returns the texts of a value. A body that a browser would change is in base64; one that is too long, empty or
// not to be seen is kept.
func bodyOf(value json.RawMessage) body {
	members := membersIn(value)
	b := body{as: AsJSON}
	if contentType := members["content_type"]; contentType != nil {
		b.contentType = unquote(contentType)
		delete(members, "content_type")
	}
	for name, raw := range members {
		b.as, b.text = bodyMembers[name], string(raw)
		if b.as != AsJSON {
			b.text = unquote(raw)
		}
	}
	if !isBrowserSafe(b.text) {
		b.contentType = cmp.Or(b.contentType, defaultTypes[b.as])
		b.as, b.text = asBase64, base64.StdEncoding.EncodeToString([]byte(b.text))
	}
	if len(members) > 0 && (b.text == "" || b.text == Redacted || len(b.text) > maxEditable) {
		b.as, b.text = AsKept, ""
	}
	return b
}

// textOfBody returns the text of one of the fields.
func textOfBody(value json.RawMessage, k kind) string {
	switch b := bodyOf(value); {
	case value == nil:
		return ""
	case k == bodyKind:
		return b.text
	case k == bodyAsKind:
		return b.as
	default:
		return b.contentType
	}
}

// isBrowserSafe reports whether a text comes back from a browser as it was: line ends become CRLF, and other controls
// may be lost.
func isBrowserSafe(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == utf8.RuneError || r == 0xfeff
	})
}

// readBody returns the members of the body that the texts of an object's fields say, and whether it differs from what
// is stored.
func readBody(object, text string, texts Texts, stored json.RawMessage) (members Values, differs bool, err error) {
	typed := body{text, cmp.Or(texts[object+"body_as"], AsJSON), strings.TrimSpace(texts[object+"content_type"])}
	members = membersIn(stored)
	if typed == bodyOf(stored) {
		return members, false, nil
	}
	trimmed := strings.TrimSpace(text)
	switch {
	case typed.as == AsKept:
		delete(members, "content_type")
		if trimmed != "" {
			err = errors.New("is not what the job has: choose what kind of body it is")
		}
	case typed.as == AsText && text != "":
		members = Values{"body_text": quote(text)}
	case typed.as == AsText || trimmed == "":
		members = Values{}
	case typed.as == asBase64:
		members = Values{"body_base64": quote(trimmed)}
	default:
		members = Values{}
		members["body"], err = jsonOf(text)
	}
	if typed.contentType != "" {
		members["content_type"] = quote(typed.contentType)
	}
	return members, true, err
}

// jsonOf returns a text that is JSON as it is.
func jsonOf(text string) (json.RawMessage, error) {
	var raw json.RawMessage
	err := json.Unmarshal([]byte(text), &raw)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + strings.Count(text[:min(int(wrong.Offset), len(text))], "\n")
		return null, fmt.Errorf("is not JSON in line %d: mend it, or choose another kind", line)
	}
	return json.RawMessage(text), err
}
