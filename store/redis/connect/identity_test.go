package connect

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/store"
)

// A meeting is a connection that meets a server.
type meeting struct {
	after time.Duration // since the one before
	id    string
	err   error
	two   bool
}

func TestIdentity_Meet(t *testing.T) {
	const second, lately, absent = time.Second, 15 * time.Second, 20 * time.Second
	for name, meetings := range map[string][]meeting{
		"a restart": {{0, "a", nil, false}, {second, "a2", io.EOF, false}, {second, "a2", nil, false}, {
			second, "a3", io.EOF, false,
		}},
		"a failover": {{0, "a", nil, false}, {second, "b", io.EOF, false}, {time.Hour, "b", nil, false}},
		"a way back": {
			{0, "a", nil, false}, {second, "b", io.EOF, false}, {absent, "a", io.EOF, false}, {second, "a", nil, false},
		},
		"a name that moves slowly": {
			{0, "a", nil, false},
			{second, "b", io.EOF, false},
			{second, "a", ErrTwoServers, true},
			{second, "b", nil, true},
			{absent, "b", nil, false},
		},
		"two in turns": {
			{0, "a", nil, false},
			{second, "b", io.EOF, false},
			{lately, "a", ErrTwoServers, true},
			{second, "b", nil, true},
			{lately, "a", ErrTwoServers, true},
			{lately, "b", nil, true},
			{second, "a", ErrTwoServers, true},
		},
		"three in turns": {{0, "a", nil, false}, {second, "b", io.EOF, false}, {second, "c", io.EOF, false}, {
			lately, "a", ErrTwoServers, true,
		}},
		"two for a while": {{0, "a", nil, false}, {second, "b", io.EOF, false}, {lately, "a", ErrTwoServers, true}, {
			time.Minute, "b", nil, false,
		}},
		"one that is gone for good": {
			{0, "a", nil, false},
			{second, "b", io.EOF, false},
			{lately, "a", ErrTwoServers, true},
			{lately, "a", io.EOF, true},
			{second, "a", nil, true},
		},
	} {
		i, now := newIdentity(newConnections(), slog.New(slog.DiscardHandler)), time.Now()
		for n, m := range meetings {
			now = now.Add(m.after)
			require.ErrorIs(t, i.meet(m.id, now), m.err, "%s: %d", name, n)
			require.Equal(t, m.two, i.check(now) != nil, "%s: %d", name, n)
		}
	}
}

// twoServers returns a client of an address that leads to the first of two servers, each of which has its name under a
// key.
func twoServers(t *testing.T) (c *Client, proxy *redistest.Proxy, log *testkit.Log, servers [2]*redistest.Server) {
	t.Helper()
	for i, name := range []string{"first", "second"} {
		servers[i] = redistest.Start(t)
		admin := admin(t, servers[i])
		require.NoError(t, admin.Set(t.Context(), "name", name, 0).Err())
	}
	proxy = redistest.StartProxy(t, servers[0].Addr())
	address, err := ParseAddress("redis://" + proxy.Addr())
	require.NoError(t, err)
	log = &testkit.Log{}
	c = New(address, Wait{}, slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, proxy, log, servers
}

func admin(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// requireServer requires that calls reach a server, on however many connections.
func requireServer(t *testing.T, c *Client, name string) {
	t.Helper()
	answers := make(chan string, 8)
	for range 8 {
		go func() { answers <- c.Get(t.Context(), "name").String() }()
	}
	for range 8 {
		require.Equal(t, "get name: "+name, <-answers)
	}
}

func TestClient_ReplacesAllConnectionsWhenItsAddressLeadsElsewhere(t *testing.T) {
	t.Parallel()
	c, proxy, log, servers := twoServers(t)
	requireServer(t, c, "first")
	var l Listener
	defer l.Close()
	waited := make(chan error, 1)
	go func() {
		_, err := l.Pop(t.Context(), c, []string{"list"}, 1, time.Hour)
		waited <- err
	}()
	first := admin(t, servers[0])
	require.Eventually(t, func() bool {
		info, err := first.Info(t.Context(), "clients").Result()
		return err == nil && ParseInfo(info)["blocked_clients"] == "1"
	}, time.Minute, time.Millisecond)
	proxy.Lead(servers[1].Addr())
	require.NoError(t, c.MeetServer(t.Context()))
	requireServer(t, c, "second")
	require.ErrorIs(t, <-waited, store.ErrUnavailable, "it waited at the first")
	require.NoError(t, admin(t, servers[1]).RPush(t.Context(), "list", "wake-up").Err())
	popped, err := l.Pop(t.Context(), c, []string{"list"}, 1, time.Hour)
	require.NoError(t, err)
	require.Equal(t, []string{"wake-up"}, popped)
	require.Contains(t, log.String(), "replacing all connections")
}

func TestClient_KeepsToOneOfTwoServers(t *testing.T) {
	t.Parallel()
	c, proxy, _, servers := twoServers(t)
	requireServer(t, c, "first")
	proxy.Lead(servers[1].Addr())
	require.NoError(t, c.MeetServer(t.Context()))
	requireServer(t, c, "second")
	proxy.Lead(servers[0].Addr())
	require.ErrorIs(t, c.MeetServer(t.Context()), ErrTwoServers)
	require.Equal(t, "get name: second", c.Get(t.Context(), "name").String(), "its connections stay open")
	proxy.Cut()
	err := MapError(t.Context(), c.Get(t.Context(), "name").Err())
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "two redis servers answer")
	proxy.Lead(servers[1].Addr())
	requireServer(t, c, "second")
	require.ErrorIs(t, c.MeetServer(t.Context()), ErrTwoServers, "for a while")
}
