package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The URL (36 bytes) and the body (64 bytes) of each waiting job. Peers without a URL have both in their payload.
var (
	waitingURL  = "http://127.0.0.1:9/" + strings.Repeat("x", 36-19)
	waitingBody = `{"order":4711,"note":"` + strings.Repeat("x", 64-24) + `"}`
)

// waitSteps is the number of readings of memory while a store is filled.
const waitSteps = 10

// A million is Ringback on a store with a million jobs that are due tomorrow (fewer in a quick run).
type million struct {
	store  *store
	r      *ringback
	memory filled // of Redis
}

// onMany starts Ringback on the store of waiting jobs.
func (b *bench) onMany(ctx context.Context, s *store) (*ringback, error) {
	if s.redis == nil || b.Shards < 2 {
		return b.startRingback(ctx, s)
	}
	return b.startRingback(ctx, s, fmt.Sprintf("--shards=%d", b.Shards))
}

// filled is the memory that jobs take on a server.
type filled struct {
	perJob float64 // bytes
	steps  curve   // MB by jobs
}

// million fills a store at its first call. The store is removed when the program ends.
func (b *bench) million(ctx context.Context, engine string) (*million, error) {
	if m := b.waiting[engine]; m != nil {
		return m, nil
	}
	s, err := b.newStore(ctx, engine)
	if err != nil {
		return nil, err
	}
	b.atEnd(s.end)
	r, err := b.onMany(ctx, s)
	if err != nil {
		return nil, err
	}
	m := &million{store: s, r: r}
	b.atEnd(func() { m.r.kill() })
	fill := func(ctx context.Context, n int) error {
		return r.fill(ctx, n, func(to []byte, _ int) []byte {
			return fmt.Appendf(to, `{"topic":"wait","url":%q,"body":%s,"delay":%d}`, waitingURL, waitingBody,
				86_400+rand.IntN(86_400))
		})
	}
	began := time.Now()
	if s.redis != nil {
		m.memory, err = b.memoryOf(ctx, ours(engine), s.redis, fill, func() {})
	} else {
		err = fill(ctx, b.Pending)
	}
	if err != nil {
		return nil, fmt.Errorf("fill the store: %w", err)
	}
	b.say("  %s jobs wait in %s, after %s", number(float64(b.Pending)), engine, time.Since(began).Round(time.Second))
	b.waiting[engine] = m
	return m, nil
}

// memoryOf reads a server's memory while it is filled, and again after the program that filled it has ended.
func (b *bench) memoryOf(
	ctx context.Context, name string, s *redisServer, fill func(context.Context, int) error, gone func(),
) (filled, error) {
	before, err := s.quietMemory(ctx)
	if err != nil {
		return filled{}, err
	}
	f := filled{steps: curve{Name: name, X: []float64{0}, Y: []float64{0}}}
	for step := range waitSteps {
		if err := fill(ctx, b.Pending/waitSteps); err != nil {
			return filled{}, err
		}
		used, err := s.info(ctx, "memory", "used_memory")
		if err != nil {
			return filled{}, err
		}
		f.steps.X = append(f.steps.X, float64((step+1)*b.Pending/waitSteps))
		f.steps.Y = append(f.steps.Y, (used-before)/1e6)
	}
	gone()
	after, err := s.quietMemory(ctx)
	f.perJob = (after - before) / float64(b.Pending)
	return f, err
}

// quietMemory waits until a server's rewrites have ended and its memory is constant, at most for half a minute.
func (s *redisServer) quietMemory(ctx context.Context) (float64, error) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	last, still := 0.0, 0
	for range 100 {
		used, err := s.info(ctx, "memory", "used_memory")
		if err != nil {
			return 0, err
		}
		rewrites, err := s.info(ctx, "persistence", "aof_rewrite_in_progress")
		if err != nil {
			return 0, err
		}
		if still++; rewrites != 0 || math.Abs(used-last) > used/2000 {
			still = 0
		}
		if still >= 3 {
			return used, nil
		}
		last = used
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return last, nil
}

// asynqMemory measures the memory of asynq's tasks that are due tomorrow.
func (b *bench) asynqMemory(ctx context.Context) (filled, error) {
	s, err := b.startRedis(ctx)
	if err != nil {
		return filled{}, err
	}
	defer s.end()
	p, err := b.again(ctx, "asynq")
	if err != nil {
		return filled{}, err
	}
	defer p.end()
	return b.memoryOf(ctx, asynqName, s, func(ctx context.Context, n int) error {
		_, err := p.ask(ctx, order{
			Do: "fill", Store: s.addr, Jobs: n, Concurrency: workers, Seconds: 86_400, Body: waitingURL + waitingBody,
		})
		return err
	}, p.end)
}

// lmstfyMemory writes lmstfy's keys of delayed jobs: the body under j/namespace/queue/id with a time to live, and an
// entry in one sorted set, scored by the due second: namespace, queue, tries and id, each after its length in two
// bytes. Ids have 26 characters.
func (b *bench) lmstfyMemory(ctx context.Context) (filled, error) {
	const namespace, queue, tries, day = "bench", "callback", 1, 24 * time.Hour
	s, err := b.startRedis(ctx)
	if err != nil {
		return filled{}, err
	}
	defer s.end()
	text := waitingURL + waitingBody
	next := 0
	return b.memoryOf(ctx, "lmstfy's layout", s, func(ctx context.Context, n int) error {
		const part = 1000
		for from := 0; from < n; from += part {
			pipe := s.client.Pipeline()
			for range min(part, n-from) {
				next++
				id := fmt.Sprintf("%08X%018X", next, rand.Uint64())
				delay := rand.N(day)
				pipe.SetNX(ctx, "j/"+namespace+"/"+queue+"/"+id, text, day+delay)
				packed := appendText(appendText(nil, namespace), queue)
				packed = binary.LittleEndian.AppendUint16(packed, tries)
				pipe.ZAdd(ctx, "timer_set",
					redis.Z{Score: float64(time.Now().Add(delay).Unix()), Member: appendText(packed, id)})
			}
			if _, err := pipe.Exec(ctx); err != nil {
				return fmt.Errorf("write jobs: %w", err)
			}
		}
		return nil
	}, func() {})
}

// appendText appends a text after its length.
func appendText(to []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint16(to, uint16(len(text))), text...)
}
