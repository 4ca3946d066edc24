package connect

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// meetingTime is how long a server that a connection has met counts as one to which the address leads.
const meetingTime = time.Minute

// absentTime is how long a server that no connection has met counts as present (Redis's health is looked at every few
// seconds): so long two are an error, and the one that was left is not followed back.
const absentTime = 20 * time.Second

// ErrTwoServers says that connections to one address meet two servers in turns.
var ErrTwoServers = errors.New("two redis servers answer at one address, in turns: let its name or load balancer " +
	"lead to one only")

// A replacedError ends a connection that has met another server than those before it. All connections are closed then,
// this one too. go-redis repeats the call on a new one, as after the end of a file.
type replacedError struct{}

func (replacedError) Error() string { return "the address of redis leads to another server" }

func (replacedError) Is(target error) bool { return target == io.EOF }

// An identity is the server that the connections of a client lead to. A name can come to lead to another server while
// connections to the one before are open, and both take writes: what is written to one is missing at the other. So each
// new connection asks for the server's run id. Another one than before replaces all connections. One that was left and
// is met again, while the other is still met as well, belongs to a second server at the address: its connections are
// refused, so that all calls go to one. It is safe for concurrent use.
type identity struct {
	conns *connections
	log   *slog.Logger

	mu       sync.Mutex
	current  string               // the run id; empty: not known yet
	replaced int                  // how often current has changed
	met      map[string]time.Time // by run id: when a connection has last met it, within meetingTime
	two      time.Time            // when ErrTwoServers was last found
}

func newIdentity(conns *connections, log *slog.Logger) *identity {
	return &identity{conns: conns, log: log, met: make(map[string]time.Time)}
}

// onConnect implements redis.Options.OnConnect.
func (i *identity) onConnect(ctx context.Context, c *redis.Conn) error { return i.ask(ctx, c) }

// ask asks the server of a new connection for its run id. One that does not tell it passes.
func (i *identity) ask(ctx context.Context, c redis.Cmdable) error {
	i.mu.Lock()
	replaced := i.replaced
	i.mu.Unlock()
	info, err := c.Info(ctx, "server").Result()
	if _, isReply := errors.AsType[redis.Error](err); isReply && !isClientSide(err) {
		return nil // the call meets what keeps it from answering
	}
	if err != nil {
		return err // go-redis inspects it
	}
	id := ParseInfo(info)["run_id"]
	if id == "" {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if replaced != i.replaced {
		return replacedError{} // it was opened before, and closed with the others
	}
	return i.meet(id, time.Now())
}

// meet judges the server of a new connection. The caller has locked i.mu.
func (i *identity) meet(id string, now time.Time) error {
	maps.DeleteFunc(i.met, func(_ string, at time.Time) bool { return now.Sub(at) >= meetingTime })
	_, again := i.met[id]
	other := now.Sub(i.met[i.current]) < absentTime
	i.met[id] = now
	switch {
	case i.current == "" || i.current == id:
		i.current = id
		return nil
	case again && other:
		i.two = now
		return ErrTwoServers
	}
	i.log.Warn("redis was restarted, or its address leads to another server: replacing all connections",
		"run_id", id, "before", i.current)
	i.met[i.current] = now
	i.current = id
	i.replaced++
	i.conns.closeAll()
	return replacedError{}
}

// check returns ErrTwoServers if two servers were met lately.
func (i *identity) check(now time.Time) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.two.IsZero() && now.Sub(i.two) < absentTime {
		return ErrTwoServers
	}
	return nil
}

// MeetServer opens a connection of its own, and so learns to which server the address leads now, and replaces the
// others if it is another one than before. It returns ErrTwoServers if two were met within absentTime. Sentinels and
// clusters name their servers, so none of them is asked.
func (c *Client) MeetServer(ctx context.Context) error {
	if c.server == nil {
		return nil
	}
	o := c.address.options
	o.OnConnect = nil // asked below, so that a connection costs no second call
	client, err := c.blocking(ctx, o, "", o.ReadTimeout)
	if err != nil {
		return err
	}
	defer client.abort()
	err = c.server.ask(ctx, client)
	if _, replaced := errors.AsType[replacedError](err); err != nil && !replaced && !errors.Is(err, ErrTwoServers) {
		return MapError(ctx, err)
	}
	return c.server.check(time.Now())
}
