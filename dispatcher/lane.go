package dispatcher

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/ringback/ringback/job"
)

// laneOf is the lane of jobs that name none: the URL's host and port, in small letters, the port made explicit, so that
// equal targets share a lane. A host that is no lane name as it stands (an internationalised or very long one) is named
// by a hash of it: receivers never share a lane for want of a name.
func laneOf(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" {
		return job.DefaultLane
	}
	host, port := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), u.Port()
	if port == "" {
		port = "80"
		if strings.EqualFold(u.Scheme, "https") {
			port = "443"
		}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if lane := host + ":" + port; job.IsLane(lane) {
		return lane
	}
	sum := sha256.Sum256([]byte(host))
	return "host-" + hex.EncodeToString(sum[:12]) + ":" + port
}
