package codec

import "strings"

// origin is the start of a URL whose host and port are the job's lane, the default lane. A lane always has a port; a
// URL may omit the default port.
type origin struct {
	scheme string
	port   string // omitted in the URL
}

// A URL is encoded as a byte and the rest: 0 and the whole URL, 1 + an index of origins and the part after the origin,
// or, if that begins with a slash, 1 + len(origins) + the index and the part after the slash.
var origins = [...]origin{{"http://", ""}, {"https://", ""}, {"http://", ":80"}, {"https://", ":443"}}

func appendURL(b []byte, lane, url string) []byte {
	if url == "" {
		return b
	}
	if lane != "" {
		for i, o := range origins {
			rest, ok := o.cut(url, lane)
			if !ok {
				continue
			}
			if path, ok := strings.CutPrefix(rest, "/"); ok {
				return append(append(b, byte(1+len(origins)+i)), path...)
			}
			return append(append(b, byte(1+i)), rest...)
		}
	}
	return append(append(b, 0), url...)
}

func readURL(lane string, value []byte) (url string, err error) {
	if len(value) == 0 || int(value[0]) > 2*len(origins) {
		return "", ErrMalformed
	}
	switch n, rest := int(value[0]), string(value[1:]); {
	case n == 0:
		return rest, nil
	case n <= len(origins):
		return origins[n-1].join(lane, rest), nil
	default:
		return origins[n-1-len(origins)].join(lane, "/"+rest), nil
	}
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
