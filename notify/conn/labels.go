package conn

import (
	"hash/maphash"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/ringback/ringback/job"
)

// net/http keeps connections by the host and port of a URL alone. So that it tells connections of one host apart, each host
// that it is given begins with a label, a first part of a name, which the dialer takes off again. The request itself names
// the host as it is, and so do TLS and the guard.

// sharedLabel is of connections that all queues share.
const sharedLabel = "shared"

// labelSeed keeps others from finding queues whose labels are the same.
var labelSeed = maphash.MakeSeed()

// queueLabel is of connections that only a queue uses.
func queueLabel(queue job.Queue) string {
	return strconv.FormatUint(maphash.Comparable(labelSeed, queue), 16)
}

// labelled is a URL whose host begins with a label.
func labelled(u *url.URL, label string) *url.URL {
	with := *u
	if host, ok := strings.CutPrefix(u.Host, "["); ok {
		with.Host = "[" + label + "." + host
	} else {
		with.Host = label + "." + u.Host
	}
	return &with
}

// withoutLabel is the host and port that net/http dials, as they were before.
func withoutLabel(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	_, host, _ = strings.Cut(host, ".")
	return net.JoinHostPort(host, port)
}

// maxKnownHosts bounds the hosts of which is known what they speak.
const maxKnownHosts = 4096

// A hostSet holds hosts with their ports, up to a number, each with the queue for which it came. When it is full, any of them
// makes room for another.
type hostSet struct {
	most int

	mu    sync.RWMutex
	hosts map[string]job.Queue
}

func newHostSet(most int) *hostSet {
	return &hostSet{most: most, hosts: make(map[string]job.Queue)}
}

// first is the queue for which a host came.
func (s *hostSet) first(addr string) (queue job.Queue, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	queue, ok = s.hosts[addr]
	return queue, ok
}

// add changes nothing where the host is there.
func (s *hostSet) add(addr string, queue job.Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.hosts[addr]; ok {
		return
	}
	if len(s.hosts) >= s.most {
		for other := range s.hosts {
			delete(s.hosts, other)
			break
		}
	}
	s.hosts[addr] = queue
}

func (s *hostSet) remove(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hosts, addr)
}
