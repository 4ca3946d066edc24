package notify

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
)

// GuardOptions say what a Guard admits beyond public addresses. The zero value admits those alone.
type GuardOptions struct {
	// AllowPrivate admits loopback, RFC 1918 and unique local (fc00::/7) addresses; never link-local ones, those of
	// cloud metadata services, or our own API.
	AllowPrivate bool
	// AllowTargets admits exactly what lies in these networks, but for our own API. Link-local, multicast, unspecified
	// and metadata addresses only when the network is no wider than the refused one: 0.0.0.0/0 does not admit
	// 169.254.169.254, 169.254.169.254/32 does. An IPv4 address inside an IPv6 one must be admitted as well.
	AllowTargets []netip.Prefix
	// OwnAddrs are those that our API listens at, as far as they are known yet; see Guard.Own.
	OwnAddrs []netip.AddrPort
}

// A Guard decides which addresses may be called. It is asked at registration, about what a URL says literally, and at
// every dial, about the address that is really dialled.
type Guard struct {
	private bool
	targets []netip.Prefix
	local   func() ([]net.Addr, error) // the addresses of this machine

	mu  sync.RWMutex
	own []netip.AddrPort
}

// NewGuard makes a Guard.
func NewGuard(o GuardOptions) *Guard {
	g := &Guard{private: o.AllowPrivate, local: net.InterfaceAddrs}
	for _, p := range o.AllowTargets {
		g.targets = append(g.targets, p.Masked())
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			g.targets = append(g.targets, netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked())
		}
	}
	for _, addr := range o.OwnAddrs {
		g.Own(addr)
	}
	return g
}

// Own adds an address that our API listens at: no job may call it. Listening at the unspecified address covers every
// address of this machine at that port. It holds for connections made from now on.
func (g *Guard) Own(addr netip.AddrPort) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = append(g.own, netip.AddrPortFrom(plainAddr(addr.Addr()), addr.Port()))
}

// A BlockedError says that an address may not be called, by which rule, and what would admit it.
type BlockedError struct {
	// Target is the address, or the name that stands for one.
	Target string
	// Rule names what it is: "a private address (RFC 1918)".
	Rule string
	// Option is what would admit it; empty: nothing does.
	Option string
}

func (e *BlockedError) Error() string {
	if e.Option == "" {
		return fmt.Sprintf("%s may not be called: it is %s, which nothing admits", e.Target, e.Rule)
	}
	return fmt.Sprintf("%s may not be called: it is %s, which only %s admits", e.Target, e.Rule, e.Option)
}

// Control is a net.Dialer's ControlContext: it sees each address after its name was resolved and before it is dialled.
// The error is a *BlockedError.
func (g *Guard) Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") {
		return &BlockedError{Target: network + " " + address, Rule: "no TCP address"}
	}
	// A socket for a mapped address is an IPv4 one.
	return g.check(netip.AddrPortFrom(plainAddr(target.Addr()), target.Port()))
}

// check judges one address. The first rule that names it decides; an IPv4 address inside it is judged as well.
func (g *Guard) check(target netip.AddrPort) error {
	addr := target.Addr().WithZone("")
	if g.owns(netip.AddrPortFrom(plainAddr(addr), target.Port())) {
		return &BlockedError{Target: target.String(), Rule: "this service's own API"}
	}
	r := ruleFor(addr)
	if r == nil {
		return nil
	}
	if !g.admits(r, addr) {
		return &BlockedError{Target: addr.String(), Rule: r.name, Option: r.option(addr)}
	}
	if r.inner == nil {
		return nil
	}
	for _, inner := range r.inner(addr) {
		if err := g.check(netip.AddrPortFrom(inner, target.Port())); err != nil {
			return err
		}
	}
	return nil
}

// admits reports whether the options admit what a rule refuses.
func (g *Guard) admits(r *rule, addr netip.Addr) bool {
	if r.private && g.private {
		return true
	}
	return slices.ContainsFunc(g.targets, func(p netip.Prefix) bool {
		return p.Contains(addr) && (!r.strict || p.Bits() >= r.prefix.Bits())
	})
}

// owns reports whether something of ours listens at the address. Dialling the unspecified address reaches loopback.
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

// isLocal reports whether an address is one of this machine's. When that cannot be told, it is.
func (g *Guard) isLocal(addr netip.Addr) bool {
	if addr.IsLoopback() {
		return true
	}
	addrs, err := g.local()
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

// plainAddr is an address without its zone, and out of its IPv4-mapped form.
func plainAddr(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
