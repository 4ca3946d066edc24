package job

import (
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Redacted replaces what a client may not see.
const Redacted = "[redacted]"

// HideReceiver replaces the attempt's URL and whatever tells its host: the error, which may name the host or an
// address, and those parts of the answer that do. wholeAnswer replaces all of the answer.
func (a *Attempt) HideReceiver(wholeAnswer bool) {
	var names []string
	if u, err := url.Parse(a.URL); err == nil && u.Hostname() != "" {
		names = append(names, strings.ToLower(u.Hostname()))
	}
	if at, err := netip.ParseAddrPort(a.RemoteAddr); err == nil {
		names = append(names, at.Addr().String())
	}
	tells := func(text string) bool {
		text = strings.ToLower(text)
		return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, name) })
	}
	if a.URL != "" {
		a.URL = Redacted
	}
	if a.Error != "" {
		a.Error = Redacted // the class says what failed
	}
	a.RemoteAddr = ""
	a.Header = maps.Clone(a.Header)
	for name, values := range a.Header {
		if wholeAnswer || slices.ContainsFunc(values, tells) {
			a.Header[name] = []string{Redacted}
		}
	}
	if wholeAnswer || tells(string(a.Body)) {
		a.Body = []byte(Redacted)
	}
}

// LaneWithoutHost returns the job's lane, or Redacted if it may be the host and port of its topic's URL: a job without
// a URL and a lane of its own gets that lane.
func (s *Spec) LaneWithoutHost() string {
	_, port, err := net.SplitHostPort(s.Lane)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if s.URL == "" && err == nil {
		return Redacted
	}
	return s.Lane
}
