package job

import "maps"

// The headers that carry the trace of a job (W3C Trace Context).
const (
	HeaderTraceparent = "Traceparent"
	HeaderTracestate  = "Tracestate"
)

// KeepTrace returns headers of a job with the trace that others have, unless they have one or no room for it. It
// changes neither.
func KeepTrace(from, to map[string][]string) map[string][]string {
	if HasTrace(to) || !HasTrace(from) {
		return to
	}
	kept := make(map[string][]string, len(to)+2)
	maps.Copy(kept, to)
	for _, name := range [...]string{HeaderTraceparent, HeaderTracestate} {
		if values := from[name]; len(values) > 0 {
			kept[name] = values
		}
	}
	if !HeadersFit(kept) {
		return to
	}
	return kept
}

// HasTrace reports whether headers carry a trace.
func HasTrace(header map[string][]string) bool {
	for name := range header {
		if SameHeader(name, HeaderTraceparent) {
			return true
		}
	}
	return false
}
