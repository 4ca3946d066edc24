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

// net/http pools connections by the host and port of a URL. To pool connections of one host separately, the URL's host
// gets a label as its first part, which the dialer removes. The request, TLS and the guard use the real host.

// sharedLabel is the label of connections that all queues share.
const sharedLabel = "shared"

// labelSeed keeps clients from choosing queues with equal labels.
var labelSeed = maphash.MakeSeed()

// queueLabel returns the label of the connections of one queue.
func queueLabel(queue job.Queue) string {
	return strconv.FormatUint(maphash.Comparable(labelSeed, queue), 16)
}

// labelled returns a URL with a label before its host.
func labelled(u *url.URL, label string) *url.URL {
	with := *u
	if host, ok := strings.CutPrefix(u.Host, "["); ok {
		with.Host = "[" + label + "." + host
	} else {
		with.Host = label + "." + u.Host
	}
	return &with
}

// withoutLabel returns host:port without the label.
func withoutLabel(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	_, host, _ = strings.Cut(host, ".")
	return net.JoinHostPort(host, port)
}

// maxKnownHosts bounds the hosts whose protocol is known.
const maxKnownHosts = 4096

// hostSet is a bounded set of hosts (host:port), each with the queue that added it. A full set evicts any host.
type hostSet struct {
	most int

	mu    sync.RWMutex
	hosts map[string]job.Queue
}

func newHostSet(most int) *hostSet {
	return &hostSet{most: most, hosts: make(map[string]job.Queue)}
}

// first returns the queue that added a host.
func (s *hostSet) first(addr string) (queue job.Queue, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	queue, ok = s.hosts[addr]
	return queue, ok
}

// add adds a host unless it is in the set.
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
