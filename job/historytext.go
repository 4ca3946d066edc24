package job

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/ringback/ringback/policy"
)

// entry is the stored form of an attempt or an event. Names are short, and zero values are left out, because each job
// has some.
type entry struct {
	N    *int   `json:"n,omitempty"` // nil: an event
	Kind string `json:"k,omitempty"` // empty: KindAttempt
	At   int64  `json:"ms"`          // the start of an attempt, the time of an event; Unix milliseconds

	// Durations are in units of policy.DurationUnit.
	Duration   int64               `json:"d,omitempty"`
	DNS        int64               `json:"pd,omitempty"`
	Connect    int64               `json:"pc,omitempty"`
	TLS        int64               `json:"pt,omitempty"`
	FirstByte  int64               `json:"pf,omitempty"`
	URL        string              `json:"u,omitempty"`
	RemoteAddr string              `json:"ra,omitempty"`
	Process    string              `json:"pr,omitempty"`
	Status     int                 `json:"s,omitempty"`
	Verdict    string              `json:"v,omitempty"`
	Reason     policy.Reason       `json:"r,omitempty"`
	Error      string              `json:"e,omitempty"`
	ErrorClass policy.ErrorClass   `json:"c,omitempty"`
	Header     map[string][]string `json:"h,omitempty"`
	Body       []byte              `json:"b,omitempty"`

	Fields []string `json:"f,omitempty"`
	Actor  string   `json:"a,omitempty"`
}

// AddEntry decodes the stored form of an attempt or an event, which is newer than those before, and appends it to the
// job's History or Events, of which it removes an entry that is beyond its bound.
func (j *Job) AddEntry(text []byte) error {
	var e entry
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	if e.N == nil {
		j.AddEvent(Event{At: time.UnixMilli(e.At).UTC(), Kind: EventKind(e.Kind), Fields: e.Fields, Actor: e.Actor})
		return nil
	}
	j.AddAttempt(Attempt{
		N: *e.N, Kind: cmp.Or(AttemptKind(e.Kind), KindAttempt), StartedAt: time.UnixMilli(e.At).UTC(),
		Duration: time.Duration(e.Duration) * policy.DurationUnit,
		Phases: policy.Phases{
			DNS: time.Duration(e.DNS) * policy.DurationUnit, Connect: time.Duration(e.Connect) * policy.DurationUnit,
			TLS:       time.Duration(e.TLS) * policy.DurationUnit,
			FirstByte: time.Duration(e.FirstByte) * policy.DurationUnit,
		},
		URL: e.URL, RemoteAddr: e.RemoteAddr, Process: e.Process, Status: e.Status,
		Verdict: e.Verdict, Reason: e.Reason, Error: e.Error, ErrorClass: e.ErrorClass, Header: e.Header, Body: e.Body,
	})
	return nil
}

// AddAttempt appends an attempt to History, and removes the oldest one beyond the bound.
func (j *Job) AddAttempt(a Attempt) {
	counts, same := a.Kind.Counts(), 0
	for i := range j.History {
		if j.History[i].Kind.Counts() == counts {
			same++
		}
	}
	if same == MaxAttempts {
		oldest := slices.IndexFunc(j.History, func(old Attempt) bool { return old.Kind.Counts() == counts })
		j.History = slices.Delete(j.History, oldest, oldest+1)
	}
	j.History = append(j.History, a)
}

// AddEvent appends an event to Events, and removes the oldest one beyond the bound.
func (j *Job) AddEvent(e Event) {
	if len(j.Events) == MaxEvents {
		j.Events = slices.Delete(j.Events, 0, 1)
	}
	j.Events = append(j.Events, e)
}

// JSON returns the stored form of an attempt, at a fraction of the cost of json.Marshal: each settlement writes one.
func (a *Attempt) JSON() []byte {
	b := strconv.AppendInt(append(make([]byte, 0, 512), `{"n":`...), int64(a.N), 10)
	if a.Kind != KindAttempt {
		b = appendText(append(b, `,"k":`...), string(a.Kind))
	}
	b = strconv.AppendInt(append(b, `,"ms":`...), a.StartedAt.UnixMilli(), 10)
	b = appendDuration(b, `,"d":`, a.Duration)
	b = appendDuration(b, `,"pd":`, a.Phases.DNS)
	b = appendDuration(b, `,"pc":`, a.Phases.Connect)
	b = appendDuration(b, `,"pt":`, a.Phases.TLS)
	b = appendDuration(b, `,"pf":`, a.Phases.FirstByte)
	b = appendField(b, `,"u":`, a.URL)
	b = appendField(b, `,"ra":`, a.RemoteAddr)
	b = appendField(b, `,"pr":`, a.Process)
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

// JSON returns the stored form of an event.
func (e *Event) JSON() []byte {
	return append(strconv.AppendInt(e.JSONUpToTime(), e.At.UnixMilli(), 10), '}')
}

// JSONUpToTime returns the beginning of JSON. The time in Unix milliseconds and a closing brace complete it.
func (e *Event) JSONUpToTime() []byte {
	b := appendText([]byte(`{"k":`), string(e.Kind))
	for i, field := range e.Fields {
		if i == 0 {
			b = append(b, `,"f":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendText(b, field)
	}
	if len(e.Fields) > 0 {
		b = append(b, ']')
	}
	return append(appendField(b, `,"a":`, e.Actor), `,"ms":`...)
}

// appendDuration appends a duration if it is not zero.
func appendDuration(b []byte, name string, d time.Duration) []byte {
	if d < policy.DurationUnit {
		return b
	}
	return strconv.AppendInt(append(b, name...), int64(d/policy.DurationUnit), 10)
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
