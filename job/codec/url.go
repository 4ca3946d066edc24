package codec

import (
	"strings"

	"github.com/ringback/ringback/job"
)

// origin is the start of a URL whose host and port are the job's lane, the default lane. A lane always has a port; a URL
// may omit the default port.
type origin struct {
	scheme string
	port   string // omitted in the URL
}

// A URL is encoded as a byte and the rest: 0 and the whole URL, or 1 + an index of origins and the part after the origin.
var origins = [...]origin{{"http://", ""}, {"https://", ""}, {"http://", ":80"}, {"https://", ":443"}}

func appendURL(b []byte, s *job.Spec) []byte {
	if s.URL == "" {
		return b
	}
	if s.Lane != "" {
		for i, o := range origins {
			if rest, ok := o.cut(s.URL, s.Lane); ok {
				return append(append(b, byte(1+i)), rest...)
			}
		}
	}
	return append(append(b, 0), s.URL...)
}

func readURL(s *job.Spec, value []byte) error {
	if len(value) == 0 || int(value[0]) > len(origins) {
		return ErrMalformed
	}
	rest := string(value[1:])
	if value[0] > 0 {
		rest = origins[value[0]-1].join(s.Lane, rest)
	}
	s.URL = rest
	return nil
}

// join returns the URL for the result of cut.
func (o origin) join(lane, rest string) string {
	return o.scheme + strings.TrimSuffix(lane, o.port) + rest
}

// cut returns the part of a URL after the origin of the lane.
func (o origin) cut(url, lane string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(url, o.scheme); !ok {
		return "", false
	}
	return strings.CutPrefix(rest, strings.TrimSuffix(lane, o.port))
}
