package redis

import "strings"

// An origin is how a URL may begin whose host and port are its job's lane, as they are unless the job names another:
// a lane always names the port, a URL may leave out the usual one.
type origin struct {
	scheme string
	port   string // left out
}

// origins are written as the tags from tagLaneURL on, so their order never changes. Such a field holds what follows.
var origins = [...]origin{{"http://", ""}, {"https://", ""}, {"http://", ":80"}, {"https://", ":443"}}

// join is the URL in a lane that goes on with rest.
func (o origin) join(lane string, rest []byte) string {
	return o.scheme + strings.TrimSuffix(lane, o.port) + string(rest)
}

// cut is what follows the origin in a URL of a lane. Wherever it cuts, join puts the same bytes together again.
func (o origin) cut(url, lane string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(url, o.scheme); !ok {
		return "", false
	}
	return strings.CutPrefix(rest, strings.TrimSuffix(lane, o.port))
}

// appendURL writes a job's URL, without what its lane says of it where it may: a lane is written once, a URL with each job.
func appendURL(b []byte, url string, q *queue) []byte {
	if q.short {
		for i, o := range origins {
			if rest, ok := o.cut(url, q.Lane); ok {
				return appendField(b, tagLaneURL+byte(i), []byte(rest))
			}
		}
	}
	return appendText(b, tagURL, url)
}
