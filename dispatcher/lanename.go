package dispatcher

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/ringback/ringback/job"
)

// laneOf returns the default lane of a job: its URL's host and port in lower case, with an explicit port, so that equal
// targets share a lane. An internationalised host is in ASCII, as it is dialled. A host that is not a valid lane name
// (too long) is replaced by its hash, so that no two receivers share a lane.
func laneOf(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" {
		return job.DefaultLane
	}
	host, port := u.Hostname(), job.PortOf(u)
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		host = asciiHost(host)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if lane := host + ":" + port; job.IsLane(lane) {
		return lane
	}
	sum := sha256.Sum256([]byte(host))
	return "host-" + hex.EncodeToString(sum[:12]) + ":" + port
}

// asciiHost returns a host in its ASCII form (IDNA, xn--…), as it is dialled, or unchanged if it has none.
// Compatibility forms, capital letters and the ideographic full stop are mapped as by IDNA; the punycode is that of
// net/http, which writes it into the Host header.
func asciiHost(host string) string {
	host = strings.ToLower(strings.ReplaceAll(norm.NFKC.String(host), "\u3002", "."))
	var text bytes.Buffer
	r := http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: host, Path: "/"}, Host: host}
	if r.Write(&text) != nil {
		return host
	}
	written, err := http.ReadRequest(bufio.NewReader(&text))
	if err != nil {
		return host
	}
	return written.Host
}
