package api

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

const (
	// failureBurst is how many failed attempts of an address are answered at once, failureEvery the time between later
	// ones.
	failureBurst = 20
	failureEvery = time.Second
	// maxFailureDelay bounds how long an answer waits.
	maxFailureDelay = 5 * time.Second
	// failureTable is the number of addresses that are remembered.
	failureTable = 1024
)

// failures counts failed attempts per address. Addresses share places in a table of fixed size: one that fails takes
// the place of the other, which begins anew. So the memory is bounded, and an attacker with many addresses is limited
// less.
type failures struct {
	mu    sync.Mutex // guards table
	table [failureTable]failure
}

// A failure is the state of an address: the time at which all its failures are forgiven.
type failure struct {
	addr      netip.Prefix
	forgiveAt time.Time
}

// failureSeed makes the places of addresses unpredictable.
var failureSeed = maphash.MakeSeed()

// add counts a failed attempt of a remote address. It returns how long its answer has to wait, behind those of the
// attempts before it; zero: the burst is not used up.
func (f *failures) add(remote string, now time.Time) time.Duration {
	addr := prefixOf(remote)
	f.mu.Lock()
	defer f.mu.Unlock()
	place := &f.table[maphash.Comparable(failureSeed, addr)%failureTable]
	if place.addr != addr || place.forgiveAt.Before(now) {
		*place = failure{addr: addr, forgiveAt: now}
	}
	burst := now.Add(failureBurst * failureEvery)
	place.forgiveAt = place.forgiveAt.Add(failureEvery)
	if latest := burst.Add(maxFailureDelay); place.forgiveAt.After(latest) {
		place.forgiveAt = latest
	}
	return max(place.forgiveAt.Sub(burst), 0)
}

// prefixOf returns the address of an IPv4 client, and of an IPv6 client its network, in which it can choose any
// address.
func prefixOf(remote string) netip.Prefix {
	parsed, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := parsed.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(addr, bits).Masked()
}
