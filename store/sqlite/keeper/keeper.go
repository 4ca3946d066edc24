package keeper

import (
	"context"
	"log/slog"
	"time"

	"github.com/ringback/ringback/internal/limitedlog"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/work"
)

// A Keeper does the carrier's work on a database. It is safe for concurrent use.
type Keeper struct {
	db         *db.Writer[*work.Unit]
	clock      clock.Reader
	lead       leadLock
	unreadable limitedlog.Log // outbox entries
}

// An op is a call to the writer.
type op = db.Call[*work.Unit]

// New returns the keeper of a database.
func New(w *db.Writer[*work.Unit], now clock.Reader, log *slog.Logger) *Keeper {
	return &Keeper{db: w, clock: now, unreadable: limitedlog.Log{Logger: log, Interval: time.Minute}}
}

// Repair implements store.Keeper. There is nothing to repair: what belongs together is one transaction, and a file that
// lost its last ones is the file as it was before.
func (k *Keeper) Repair(ctx context.Context) (store.RepairResult, error) {
	return store.RepairResult{Complete: true, Wait: -1}, ctx.Err()
}

// Alarm implements store.Keeper.
func (k *Keeper) Alarm(ctx context.Context, token store.Token, alarm store.Alarm) (bool, error) {
	outbox := work.EncodeOutbox(alarm.Outbox)
	c := op{Verb: "note an alarm", Durable: true, Weight: 1 + len(outbox)}
	return work.Submit(ctx, k.db, token, c, lightWeight, func(u *work.Unit) (bool, error) {
		name := memory.TopicName{Namespace: alarm.Namespace, Name: alarm.Topic}
		if t := u.Mem.Topics[name]; alarm.Raised == (t != nil && t.Alarm) {
			return false, nil
		}
		t, err := u.Topic(name)
		if err != nil {
			return false, err
		}
		u.TouchTopic(t)
		t.Alarm = alarm.Raised
		return true, u.Enqueue(alarm.Outbox, outbox)
	})
}

// lightWeight is the weight of a kept answer of a few words.
func lightWeight[T any](T) int { return 64 }
