package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringback/ringback/client"
)

// Execer executes a statement: a *sql.Tx, or a *sql.Conn or *sql.DB outside of transactions.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Bounds of the statements of Add, and of the requests of a relay.
const (
	maxInsertRows  = 32
	maxInsertBytes = 1 << 20
	maxJobBytes    = 15 << 20
)

// Add writes jobs to the outbox. They are registered after tx is committed: tell a relay by Relay.Wake. After an error
// roll the transaction back.
//
// A job without an ID gets one; set it to client.NewID() to know it. Adding a job twice under an ID of yours is safe
// only with RunAt and ExpiresAt: with Delay or ExpiresIn the second has other times, and Ringback refuses it.
func (d Dialect) Add(ctx context.Context, tx Execer, jobs ...client.Job) error {
	now := time.Now()
	rows := make([]any, 0, 4*min(len(jobs), maxInsertRows))
	bytes := 0
	insert := func() error {
		if len(rows) == 0 {
			return nil
		}
		statement := insertJobs + strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?), ", len(rows)/4), ", ")
		_, err := tx.ExecContext(ctx, d.bind(statement), rows...)
		rows, bytes = rows[:0], 0
		if err != nil {
			return fmt.Errorf("outbox: add jobs: %w", err)
		}
		return nil
	}
	for i, j := range jobs {
		text, err := encode(&j, now)
		if err != nil {
			return fmt.Errorf("outbox: job %d: %w", i, err)
		}
		if len(rows) == 4*maxInsertRows || bytes+len(text) > maxInsertBytes {
			if err := insert(); err != nil {
				return err
			}
		}
		rows, bytes = append(rows, j.ID, text, len(text), now.UnixMilli()), bytes+len(text)
	}
	return insert()
}

// encode returns the JSON of a job that is added at a time, with its id and with times instead of durations.
func encode(j *client.Job, now time.Time) ([]byte, error) {
	switch {
	case j.ID != "" && !validID(j.ID):
		return nil, fmt.Errorf("its ID %q must be 1 to 64 of A-Z a-z 0-9 _ : and -, not beginning with rb: as "+
			"Ringback's own do", j.ID)
	case j.Delay != 0 && !j.RunAt.IsZero():
		return nil, errors.New("its Delay cannot be combined with RunAt: set one of them")
	case j.ExpiresIn != 0 && !j.ExpiresAt.IsZero():
		return nil, errors.New("its ExpiresIn cannot be combined with ExpiresAt: set one of them")
	case j.Delay < 0, j.ExpiresIn < 0:
		return nil, errors.New("its Delay and ExpiresIn must not be negative")
	}
	if j.ID == "" {
		j.ID = client.NewID()
	}
	if j.Delay > 0 {
		j.RunAt, j.Delay = now.Add(j.Delay), 0
	}
	if j.ExpiresIn > 0 {
		j.ExpiresAt, j.ExpiresIn = now.Add(j.ExpiresIn), 0
	}
	text, err := j.MarshalJSON()
	switch {
	case err != nil:
		return nil, err // it names the field
	case !utf8.Valid(text):
		return nil, errors.New("its Body must be UTF-8: pass other bytes as []byte")
	case len(text) > maxJobBytes:
		return nil, fmt.Errorf("is %d B of JSON: at most %d B can be registered", len(text), maxJobBytes)
	}
	return text, nil
}

// maxIDBytes is the longest id that Ringback accepts.
const maxIDBytes = 64

// validID reports whether Ringback accepts an id. One that it refuses would be found out only by the relay.
func validID(id string) bool {
	return len(id) <= maxIDBytes && !strings.HasPrefix(id, "rb:") && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != ':' && r != '-'
	})
}
