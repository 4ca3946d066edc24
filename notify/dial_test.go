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

	"github.com/ringback/ringback/policy"
)

// resolving makes a resolver for which every name has the IPv4 addresses that addrs gives at that moment.
func resolving(addrs func() []string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			serveDNS(theirs, addrs)
		}()
		return ours, nil
	}}
}

// serveDNS answers queries as over TCP (RFC 1035 §4.2.2): type A with addrs, all others with nothing.
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

func TestANameThatIsReboundGainsNothing(t *testing.T) {
	server, got := recorder(t, (*httptest.Server).Start)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	var lookups atomic.Int32
	s := newSender(t, Options{
		Guard: NewGuard(targets("127.0.0.1/32")),
		Resolver: resolving(func() []string {
			if lookups.Add(1) == 1 {
				return []string{"127.0.0.1"}
			}
			return []string{"127.0.0.2"}
		}),
	})
	url := "http://shop.example:" + port
	require.Equal(t, 200, s.Deliver(t.Context(), ask(url)).Status)
	<-got
	s.Close() // so that the next attempt looks the name up
	result := s.Deliver(t.Context(), ask(url))
	require.Equal(t, policy.ClassBlocked, result.Class, result.Error)
	require.Contains(t, result.Error, "127.0.0.2")
	require.Equal(t, int32(2), lookups.Load())
	require.Empty(t, got)
}

func TestAHostIsRefusedForGoodOnlyWhenAllItsAddressesAre(t *testing.T) {
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
			Guard:    NewGuard(targets("127.0.0.1/32")),
			Resolver: resolving(func() []string { return test.addrs }),
		})
		result := s.Deliver(t.Context(), ask("http://shop.example:"+port))
		if test.final {
			require.Equal(t, policy.ClassBlocked, result.Class, result.Error)
			continue
		}
		require.Contains(t, []policy.ErrorClass{policy.ClassUnreachable, policy.ClassRefused}, result.Class, result.Error)
	}
}
