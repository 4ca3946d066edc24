package notify

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/guard"
	"github.com/ringback/ringback/policy"
)

// resolverOf returns a resolver that resolves every name to the current IPv4 addresses of addrs.
func resolverOf(addrs func() []string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			serveDNS(theirs, addrs)
		}()
		return ours, nil
	}}
}

// serveDNS answers DNS queries over TCP (RFC 1035 §4.2.2): type A with addrs, others with no records.
func serveDNS(conn net.Conn, addrs func() []string) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		end := 12
		for query[end] != 0 {
			end += int(query[end]) + 1
		}
		end += 5
		var answers []byte
		count := uint16(0)
		if binary.BigEndian.Uint16(query[end-4:]) == 1 {
			for _, a := range addrs() {
				answers = append(answers, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answers = append(answers, netip.MustParseAddr(a).AsSlice()...)
				count++
			}
		}
		reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, byte(count), 0, 0, 0, 0}, query[12:end]...)
		reply = append(reply, answers...)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// listenTwice listens on two loopback addresses with the same port. The second counts connections.
func listenTwice(t *testing.T) (port string, first net.Listener, came *atomic.Int32) {
	t.Helper()
	came = new(atomic.Int32)
	for range 20 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(first.Addr().String())
		require.NoError(t, err)
		second, err := net.Listen("tcp", "127.0.0.2:"+port)
		if err != nil { // somebody else has it
			require.NoError(t, first.Close())
			continue
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				conn, err := second.Accept()
				if err != nil {
					return
				}
				came.Add(1)
				_ = conn.Close()
			}
		}()
		t.Cleanup(func() { _ = second.Close(); <-done })
		return port, first, came
	}
	t.Fatal("no port is free at both addresses")
	return "", nil, nil
}

// The checked address is the one that is dialled, so that a name that changes between two attempts, or between a check
// and its dial, has no effect.
func TestDial_ResistsDNSRebinding(t *testing.T) {
	for name, admitting := range map[string]guard.Options{
		"a network": {AllowTargets: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		"a name": {
			AllowHosts: []string{"shop.example"}, DenyTargets: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
		},
	} {
		port, first, came := listenTwice(t)
		server, got := recordingServer(t, func(s *httptest.Server) {
			_ = s.Listener.Close()
			s.Listener = first
			s.Start()
		})
		require.NotNil(t, server)
		var lookups atomic.Int32
		s := newSender(t, Options{
			Guard: guard.New(admitting),
			Resolver: resolverOf(func() []string {
				if lookups.Add(1) == 1 {
					return []string{"127.0.0.1"}
				}
				return []string{"127.0.0.2"}
			}),
		})
		url := "http://shop.example:" + port
		require.Equal(t, 200, s.Deliver(t.Context(), newRequest(url)).Status, name)
		<-got
		s.Close() // so that the next attempt looks the name up
		result := s.Deliver(t.Context(), newRequest(url))
		require.Equal(t, policy.ClassBlocked, result.Class, "%s: %s", name, result.Error)
		require.Contains(t, result.Error, "127.0.0.2")
		require.Equal(t, int32(2), lookups.Load())
		require.Empty(t, got)
		require.Zero(t, came.Load(), "it was not dialled")
	}
}

func TestDial_ChecksNames(t *testing.T) {
	server, got := recordingServer(t, (*httptest.Server).Start)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	for name, test := range map[string]struct {
		guard guard.Options
		host  string
		class policy.ErrorClass
		text  string
	}{
		"allowed": {
			guard.Options{AllowHosts: []string{"shop.internal"}}, "Shop.Internal.", policy.ClassNone, "",
		},
		"allowed below": {guard.Options{AllowHosts: []string{"*.internal"}}, "shop.internal", policy.ClassNone, ""},
		"not allowed": {
			guard.Options{AllowHosts: []string{"*.shop.internal"}},
			"shop.internal",
			policy.ClassBlocked, "--allow-targets shop.internal",
		},
		"not its address": {
			guard.Options{AllowHosts: []string{"shop.internal"}}, "127.0.0.1", policy.ClassBlocked, "--allow-private",
		},
		"denied": {
			guard.Options{AllowPrivate: true, DenyHosts: []string{"shop.internal"}},
			"SHOP.internal", policy.ClassBlocked,
			"shop.internal may not be called: --deny-targets shop.internal denies it",
		},
		"denied in other letters": {
			guard.Options{AllowPrivate: true, DenyHosts: []string{"shop.internal"}},
			"ｓhop.internal",
			policy.ClassBlocked, "denies it",
		},
		"denied wins": {
			guard.Options{AllowHosts: []string{"shop.internal"}, DenyTargets: []netip.Prefix{
				netip.MustParsePrefix("127.0.0.0/8"),
			}},
			"shop.internal", policy.ClassBlocked, "127.0.0.1 may not be called: --deny-targets 127.0.0.0/8 denies it",
		},
	} {
		s := newSender(t, Options{Guard: guard.New(test.guard), Resolver: fixedResolver("127.0.0.1")})
		result := s.Deliver(t.Context(), newRequest("http://"+test.host+":"+port))
		require.Equal(t, test.class, result.Class, "%s: %s", name, result.Error)
		require.Contains(t, result.Error, test.text, name)
		if test.class == policy.ClassNone {
			<-got
		}
		require.Empty(t, got, name)
		s.Close()
	}
}

func TestDial_BlocksAHostWhenAllItsAddressesAreBlocked(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for _, test := range []struct {
		addrs []string
		final bool
	}{
		{[]string{"10.0.0.1", "169.254.169.254"}, true},
		{[]string{"127.0.0.2", "127.0.0.1"}, false},
		{[]string{"127.0.0.1", "127.0.0.2"}, false},
	} {
		s := newSender(t, Options{
			Guard:    guard.New(guard.Options{AllowTargets: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}),
			Resolver: resolverOf(func() []string { return test.addrs }),
		})
		result := s.Deliver(t.Context(), newRequest("http://shop.example:"+port))
		if test.final {
			require.Equal(t, policy.ClassBlocked, result.Class, result.Error)
			continue
		}
		require.Contains(t, []policy.ErrorClass{policy.ClassUnreachable, policy.ClassRefused},
			result.Class, result.Error)
	}
}
