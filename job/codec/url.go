package codec

import (
	"strings"

	"github.com/ringback/ringback/job"
)

// An origin is how a URL may begin whose host and port are its job's lane, as they are unless the job names another lane. A
// lane always names the port, a URL may leave out the default one.
type origin struct {
	scheme string
	port   string // that the URL leaves out
}

// A URL is written as a byte and the rest: 0 and the whole URL, or 1 + an index of origins and what follows the origin. The
// lane is stored once, URLs with each job.
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

// join is the URL that cut has taken apart.
func (o origin) join(lane, rest string) string {
	return o.scheme + strings.TrimSuffix(lane, o.port) + rest
}

// cut is what follows the origin in a URL of a lane.
func (o origin) cut(url, lane string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(url, o.scheme); !ok {
		return "", false
	}
	return strings.CutPrefix(rest, strings.TrimSuffix(lane, o.port))
}
