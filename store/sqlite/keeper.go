// This part of the package implements store.Keeper except WaitAgenda: the carrier lock, carrier rounds, retention and
// alarms.

package sqlite

import (
	"context"
	"log/slog"
	"time"

	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// A keeping does the carrier's work on a database. It is safe for concurrent use.
type keeping struct {
	db         *db.Writer[*unit.Unit]
	clock      clock.Reader
	lead       leadLock
	unreadable logs.Limited // outbox entries
}

// An keeperOp is a call to the writer.
type keeperOp = db.Call[*unit.Unit]

// newKeeper returns the keeper of a database.
func newKeeper(w *db.Writer[*unit.Unit], now clock.Reader, log *slog.Logger) *keeping {
	return &keeping{db: w, clock: now, unreadable: logs.Limited{Logger: log, Interval: time.Minute}}
}

// Repair implements store.Keeper. There is nothing to repair: what belongs together is one transaction, and a file that
// lost its last ones is the file as it was before.
func (k *keeping) Repair(ctx context.Context) (store.RepairResult, error) {
	return store.RepairResult{Complete: true, Wait: -1}, ctx.Err()
}

// Alarm implements store.Keeper.
func (k *keeping) Alarm(ctx context.Context, token store.Token, alarm store.Alarm) (bool, error) {
	outbox := unit.EncodeOutbox(alarm.Outbox)
	c := keeperOp{Verb: "note an alarm", Durable: true, Weight: 1 + len(outbox)}
	return unit.Submit(ctx, k.db, token, c, lightWeight, func(u *unit.Unit) (bool, error) {
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
