package guard

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Options are the targets that a Guard admits beyond public addresses, and those it always refuses. The zero value
// admits public addresses only. ParseTargets parses networks and hosts.
type Options struct {
	// AllowPrivate admits loopback, RFC 1918 and unique local (fc00::/7) addresses; never link-local ones, those of
	// cloud metadata services, or our own API.
	AllowPrivate bool
	// AllowTargets admits the addresses in these networks, except our own API. Link-local, multicast, unspecified and
	// metadata addresses need a network no wider than the refused one: 169.254.169.254/32 admits 169.254.169.254,
	// 0.0.0.0/0 does not. IPv4 addresses inside an IPv6 address must be admitted, too, in each position that a
	// translator or tunnel may use.
	AllowTargets []netip.Prefix
	// AllowHosts admits the addresses that these names resolve to, except our own API and link-local, multicast,
	// unspecified and metadata addresses. The owner of the name decides which addresses these are.
	AllowHosts []string
	// DenyTargets refuses the addresses in these networks, also IPv4 addresses inside IPv6 ones. It overrides all
	// options that admit.
	DenyTargets []netip.Prefix
	// DenyHosts refuses these names, and overrides, too. Another name of the same address is not refused: to refuse an
	// address, deny its network.
	DenyHosts []string
	// OwnAddrs are the known listen addresses of our API; see Guard.Own.
	OwnAddrs []netip.AddrPort
}

// A Guard decides which addresses may be called. It checks URLs at registration, and names and addresses at every dial.
type Guard struct {
	private      bool
	allowed      []netip.Prefix
	allowedHosts []string
	denied       []netip.Prefix
	deniedHosts  []string
	localAddrs   func() ([]net.Addr, error) // the addresses of this machine

	mu  sync.RWMutex
	own []netip.AddrPort
}

// New returns a Guard.
func New(o Options) *Guard {
	g := &Guard{
		private:      o.AllowPrivate,
		allowed:      plainNetworks(o.AllowTargets),
		allowedHosts: plainHosts(o.AllowHosts),
		denied:       plainNetworks(o.DenyTargets),
		deniedHosts:  plainHosts(o.DenyHosts),
		localAddrs:   net.InterfaceAddrs,
	}
	for _, addr := range o.OwnAddrs {
		g.Own(addr)
	}
	return g
}

// Own adds a listen address of our API, which no job may call. The unspecified address covers every address of this
// machine at that port. It applies to later dials.
func (g *Guard) Own(addr netip.AddrPort) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = append(g.own, netip.AddrPortFrom(plainAddr(addr.Addr()), addr.Port()))
}

// CheckDial checks an address before it is dialled, and the host that resolved to it; empty: none. It is for the
// Control function of a net.Dialer. The error is a *BlockedError.
func (g *Guard) CheckDial(host, network, address string) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") {
		return &BlockedError{Target: network + " " + address, Rule: "no TCP address"}
	}
	// A socket for a mapped address uses IPv4.
	return g.CheckAddr(host, netip.AddrPortFrom(plainAddr(target.Addr()), target.Port()))
}

// CheckName refuses denied names. The name must be in the form of plainHost.
func (g *Guard) CheckName(host string) error {
	if entry, ok := matching(g.deniedHosts, host); ok {
		return &BlockedError{Target: host, Entry: entry}
	}
	return nil
}

// CheckAddr checks an address that a host resolved to; empty: no host. The order is: denied targets, all strict rules,
// the first matching ordinary rule, and the IPv4 addresses inside it.
func (g *Guard) CheckAddr(host string, target netip.AddrPort) error {
	addr := target.Addr().WithZone("")
	if g.owns(netip.AddrPortFrom(plainAddr(addr), target.Port())) {
		return &BlockedError{Target: target.String(), Rule: ownAPI}
	}
	for _, p := range g.denied {
		if p.Contains(addr) {
			return &BlockedError{Target: addr.String(), Entry: p.String()}
		}
	}
	for i := range strictRules {
		if r := &strictRules[i]; r.matches(addr) && !g.lifts(r, addr) {
			return &BlockedError{Target: addr.String(), Rule: r.name, Option: r.option("", addr)}
		}
	}
	decided := false
	for i := range rules {
		r := &rules[i]
		if decided && r.inner == nil || !r.matches(addr) {
			continue
		}
		if !decided && !g.admits(r, host, addr) {
			return &BlockedError{Target: addr.String(), Rule: r.name, Option: r.option(host, addr)}
		}
		decided = true
		if r.inner == nil {
			continue
		}
		for _, inner := range r.inner(addr) {
			if err := g.CheckAddr(host, netip.AddrPortFrom(inner, target.Port())); err != nil {
				return err
			}
		}
	}
	return nil
}

// lifts reports whether the options admit an address that a strict rule refuses.
func (g *Guard) lifts(r *rule, addr netip.Addr) bool {
	bits := cmp.Or(r.bits, r.prefix.Bits())
	return slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Bits() >= bits && p.Contains(addr) })
}

// admits reports whether the options admit an address that an ordinary rule refuses.
func (g *Guard) admits(r *rule, host string, addr netip.Addr) bool {
	if r.private && g.private {
		return true
	}
	if host != "" {
		if _, ok := matching(g.allowedHosts, host); ok {
			return true
		}
	}
	return slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// owns reports whether our API listens at the address. Dialling the unspecified address reaches loopback.
func (g *Guard) owns(target netip.AddrPort) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, own := range g.own {
		if own.Port() != target.Port() {
			continue
		}
		if own.Addr() == target.Addr() || target.Addr().IsUnspecified() ||
			(own.Addr().IsUnspecified() && g.isLocal(target.Addr())) {
			return true
		}
	}
	return false
}

// isLocal reports whether an address belongs to this machine, true if that is unknown.
func (g *Guard) isLocal(addr netip.Addr) bool {
	if addr.IsLoopback() {
		return true
	}
	addrs, err := g.localAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		one, ok := netip.AddrFromSlice(n.IP)
		return ok && plainAddr(one) == addr
	})
}

// plainAddr returns an address without its zone and IPv4-mapped form.
func plainAddr(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
