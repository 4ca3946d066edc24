package job

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// JSON returns the bytes of json.Marshal at a fraction of its cost: each settlement writes one attempt.
func (a *Attempt) JSON() []byte { return a.appendJSON(make([]byte, 0, 512)) }

func (a *Attempt) appendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"n":`...), int64(a.N), 10)
	b = appendText(append(b, `,"k":`...), string(a.Kind))
	b = a.StartedAt.AppendFormat(append(b, `,"t":"`...), time.RFC3339Nano)
	b = append(b, '"')
	if a.Duration != 0 {
		b = strconv.AppendInt(append(b, `,"d":`...), int64(a.Duration), 10)
	}
	if a.Status != 0 {
		b = strconv.AppendInt(append(b, `,"s":`...), int64(a.Status), 10)
	}
	b = appendField(b, `,"v":`, a.Verdict)
	b = appendField(b, `,"r":`, string(a.Reason))
	b = appendField(b, `,"e":`, a.Error)
	b = appendField(b, `,"c":`, string(a.ErrorClass))
	if len(a.Header) > 0 {
		b = appendHeader(append(b, `,"h":`...), a.Header)
	}
	if len(a.Body) > 0 {
		b = base64.StdEncoding.AppendEncode(append(b, `,"b":"`...), a.Body)
		b = append(b, '"')
	}
	return append(b, '}')
}

// appendHeader appends a header, sorted by name.
func appendHeader(b []byte, header map[string][]string) []byte {
	var few [16]string
	names := few[:0]
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		b = appendText(append(b, "{,"[min(i, 1)]), name)
		if header[name] == nil {
			b = append(b, `:null`...)
			continue
		}
		b = append(b, ':', '[')
		for k, value := range header[name] {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendText(b, value)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendField appends a field if it is not empty.
func appendField(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(append(b, name...), text)
}

// appendText appends a string. encoding/json encodes those that need escapes.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c >= 0x7f, c == '"', c == '\\', c == '<', c == '>', c == '&':
			escaped, err := json.Marshal(text)
			if err != nil {
				panic("job: cannot encode a string as JSON: " + err.Error()) // cannot happen
			}
			return append(b, escaped...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}
