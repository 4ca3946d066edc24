package notify

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// shortages are system errors caused by this process or machine, not by the receiver.
//
// An unreachable forward proxy is not one of them: it may be down for long and serves some receivers only. Its errors
// have class proxy, which follows the ladder and opens breakers.
var shortages = []struct {
	err  syscall.Errno
	text string
}{
	{syscall.EMFILE, "this process has no file descriptor left: raise its limit (nofile)"},
	{syscall.ENFILE, "this machine has no file descriptor left: raise fs.file-max"},
	{syscall.ENOBUFS, "this machine has no buffer left for a connection"},
	{syscall.ENOMEM, "this machine has no memory left for a connection"},
	{
		syscall.EADDRNOTAVAIL,
		"this machine has no port left for a connection to the receiver: widen net.ipv4.ip_local_port_range",
	},
	{syscall.EAGAIN, "this machine has no room left in its tables for a connection"},
}

// asShortage reports whether an error is a local shortage, and returns its text.
func asShortage(err error) (text string, ok bool) {
	unresolved, dns := errors.AsType[*net.DNSError](err)
	for _, known := range shortages {
		switch {
		case dns && strings.Contains(unresolved.Err, known.err.Error()): // net.DNSError has only the text
		case !errors.Is(err, known.err):
			continue
		case known.err == syscall.EADDRNOTAVAIL && !hasSource(err):
			return "", false // IPv6 is switched off here
		case known.err == syscall.EAGAIN && !opening(err):
			return "", false
		}
		return known.text, true
	}
	return "", false
}

// opening reports whether an error is from opening a connection.
func opening(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}

// hasSource reports whether this machine has an address with a route to the target of a failed dial, so that the dial
// failed for want of a port. Connecting a UDP socket sends nothing.
func hasSource(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	if !ok || e.Addr == nil {
		return true
	}
	target, err := netip.ParseAddrPort(e.Addr.String())
	if err != nil || target.Addr().Unmap().Is4() {
		return true
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(target))
	if err != nil {
		return !errors.Is(err, syscall.EADDRNOTAVAIL)
	}
	_ = conn.Close()
	return true
}

// freeEvery is the shortest interval at which a shortage closes idle connections.
const freeEvery = 100 * time.Millisecond

// freeIdle closes idle connections, since descriptors or ports are short.
func (s *Sender) freeIdle() {
	last, now := s.freed.Load(), time.Now().UnixNano()
	if now-last >= int64(freeEvery) && s.freed.CompareAndSwap(last, now) {
		s.Close()
	}
}
