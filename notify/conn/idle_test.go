package conn

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/h1"
)

// idleConnTo returns a connection to a host, and a function that reports whether it was closed.
func idleConnTo(addr string) (*idleConn, func() bool) {
	near, _ := net.Pipe()
	conn := &idleConn{Conn: h1.NewConn(near), route: route{addr: addr}}
	return conn, func() bool { return near.SetDeadline(time.Time{}) != nil }
}

func TestIdle_ReusesTheConnectionUsedLast(t *testing.T) {
	i := newIdle(8, 8)
	defer i.close()
	one, _ := idleConnTo("a:80")
	two, _ := idleConnTo("a:80")
	other, _ := idleConnTo("b:80")
	i.put(one, idleTimeout)
	i.put(two, idleTimeout)
	i.put(other, idleTimeout)
	require.Same(t, two, i.take(route{addr: "a:80"}))
	require.Same(t, one, i.take(route{addr: "a:80"}))
	require.Nil(t, i.take(route{addr: "a:80"}))
	i.put(one, idleTimeout)
	require.Same(t, one, i.take(route{addr: "a:80"}))
	require.Same(t, other, i.take(route{addr: "b:80"}))
	require.Empty(t, i.hosts)
	require.Zero(t, i.order.Len())
}

func TestIdle_IsBounded(t *testing.T) {
	i := newIdle(3, 2)
	defer i.close()
	var ended []func() bool
	for _, addr := range []string{"a:80", "a:80", "a:80", "b:80", "c:80"} {
		conn, over := idleConnTo(addr)
		i.put(conn, idleTimeout)
		ended = append(ended, over)
		require.LessOrEqual(t, i.hosts[addr].Len(), 2)
	}
	require.True(t, ended[0](), "the third of a host closes its first")
	require.True(t, ended[1](), "the fourth of all closes the oldest")
	for n, over := range ended[2:] {
		require.False(t, over(), n)
	}
	require.Equal(t, 3, i.order.Len())
}

func TestIdle_ClosesAfterATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIdle(8, 8)
		defer i.close()
		old, oldEnded := idleConnTo("a:80")
		young, youngEnded := idleConnTo("a:80")
		i.put(old, idleTimeout)
		time.Sleep(time.Minute)
		i.put(young, idleTimeout)
		time.Sleep(idleTimeout - time.Minute - time.Nanosecond)
		synctest.Wait()
		require.False(t, oldEnded())
		time.Sleep(sweepInterval)
		synctest.Wait()
		require.True(t, oldEnded())
		require.False(t, youngEnded())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.True(t, youngEnded())
		require.Empty(t, i.hosts)
		require.False(t, i.timer.Stop(), "nothing is looked for where nothing is idle")

		late, lateEnded := idleConnTo("a:80")
		i.put(late, idleTimeout)
		time.Sleep(idleTimeout + sweepInterval)
		synctest.Wait()
		require.True(t, lateEnded(), "the timer runs again")
	})
}

func TestIdle_ObeysTheReceiversTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIdle(8, 8)
		defer i.close()
		for _, within := range []time.Duration{sweepInterval + time.Second, time.Second, 2 * time.Second} {
			long, longEnded := idleConnTo("a:80")
			i.put(long, idleTimeout)
			short, shortEnded := idleConnTo("b:80")
			i.put(short, within)
			time.Sleep(within - time.Nanosecond)
			require.Same(t, short, i.take(route{addr: "b:80"}), "until the end")
			i.put(short, within)
			time.Sleep(within)
			require.Nil(t, i.take(route{addr: "b:80"}), "not after it")
			synctest.Wait()
			require.True(t, shortEnded(), "it is closed then")
			require.False(t, longEnded())
			require.Same(t, long, i.take(route{addr: "a:80"}))
		}
	})
}

// Receivers that announce no time at all must not keep the mutex of all busy.
func TestIdle_SweepsAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIdle(8, 8)
		defer i.close()
		short, ended := idleConnTo("a:80")
		i.put(short, 0)
		require.Nil(t, i.take(route{addr: "a:80"}))
		time.Sleep(minSweep - time.Nanosecond)
		synctest.Wait()
		require.False(t, ended())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.True(t, ended())
	})
}

func TestIdle_ClosesConnectionsClosedByReceivers(t *testing.T) {
	i := newIdle(8, 8)
	defer i.close()
	near, far := tcpPair(t)
	other, _ := tcpPair(t)
	closed := &idleConn{Conn: h1.NewConn(near), route: route{addr: "a:80"}}
	open := &idleConn{Conn: h1.NewConn(other), route: route{addr: "a:80"}}
	i.put(closed, idleTimeout)
	i.put(open, idleTimeout)
	i.sweep()
	require.Equal(t, 2, i.order.Len())
	require.NoError(t, far.Close())
	require.Eventually(t, func() bool { return closed.HasUnread() }, 5*time.Minute, time.Millisecond)
	i.sweep()
	require.ErrorIs(t, near.SetDeadline(time.Time{}), net.ErrClosed)
	require.Same(t, open, i.take(route{addr: "a:80"}))
	require.Nil(t, i.take(route{addr: "a:80"}))
}

func TestIdle_KeepsNothingAfterCloseUntilARequest(t *testing.T) {
	i := newIdle(8, 8)
	defer i.close()
	kept, keptEnded := idleConnTo("a:80")
	i.put(kept, idleTimeout)
	i.close()
	require.True(t, keptEnded())
	late, lateEnded := idleConnTo("a:80")
	i.put(late, idleTimeout)
	require.True(t, lateEnded())
	require.Nil(t, i.take(route{addr: "a:80"}))
	again, againEnded := idleConnTo("a:80")
	i.put(again, idleTimeout)
	require.False(t, againEnded())
}

func TestIdle_ReusesConnectionsInTheirQueueOnly(t *testing.T) {
	i := newIdle(8, 8)
	defer i.close()
	a := job.Queue{Namespace: "default", Topic: "t", Lane: "a"}
	queues := []job.Queue{
		a,
		{Namespace: "default", Topic: "t", Lane: "b"},
		{Namespace: "default", Topic: "u", Lane: "a"},
		{Namespace: "other", Topic: "t", Lane: "a"},
	}
	var conns []*idleConn
	for _, queue := range queues {
		conn, _ := idleConnTo("a:80")
		conn.route.queue = queue
		conns = append(conns, conn)
		i.put(conn, idleTimeout)
	}
	require.Nil(t, i.take(route{"a:80", job.Queue{Namespace: "default", Topic: "t", Lane: "c"}}))
	for n, queue := range queues {
		require.Same(t, conns[n], i.take(route{"a:80", queue}))
		require.Nil(t, i.take(route{"a:80", queue}))
	}
}
