package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/clienttest"
	"github.com/ringback/ringback/client/outbox"
	"github.com/ringback/ringback/internal/testkit"
)

// openSQLite opens a new database with the table.
func openSQLite(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.ExecContext(t.Context(), outbox.SQLite.Schema())
	require.NoError(t, err)
	return db
}

// add adds jobs in a transaction.
func add(t testing.TB, db *sql.DB, d outbox.Dialect, jobs ...client.Job) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, d.Add(t.Context(), tx, jobs...))
	require.NoError(t, tx.Commit())
}

// runRelay runs a relay until stop is called, at last at the end of the test.
func runRelay(
	t testing.TB, db *sql.DB, d outbox.Dialect, c *client.Client, o outbox.Options,
) (r *outbox.Relay, stop func()) {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r = outbox.NewRelay(db, d, c, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return r, stop
}

// entry is a row of the table.
type entry struct {
	id      string
	tries   int
	next    time.Duration // from now; zero: at once
	problem string
}

func entries(t testing.TB, db *sql.DB) []entry {
	t.Helper()
	rows, err := db.QueryContext(t.Context(),
		"SELECT id, tries, next_try_at, COALESCE(problem, '') FROM ringback_outbox ORDER BY seq")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	var all []entry
	for rows.Next() {
		var e entry
		var next int64
		require.NoError(t, rows.Scan(&e.id, &e.tries, &next, &e.problem))
		if next > 0 {
			e.next = time.UnixMilli(next).Sub(time.Now().Truncate(time.Millisecond))
		}
		all = append(all, e)
	}
	require.NoError(t, rows.Err())
	return all
}

func TestRelay_DeliversWhenTheJobIsDueFromAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		srv := clienttest.New(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got = append(got, string(body))
		}))
		db := openSQLite(t)
		began := time.Now()
		add(t, db, outbox.SQLite, client.Job{
			ID: "close-1", URL: "https://shop.example/close", Body: []int{1},
			Delay: 30 * time.Minute, ExpiresIn: time.Hour,
		})
		add(t, db, outbox.SQLite, client.Job{URL: "https://shop.example/close", Body: []int{2}})

		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t,
			outbox.SQLite.Add(t.Context(), tx, client.Job{ID: "close-3", URL: "https://shop.example/close"}))
		require.NoError(t, tx.Rollback())

		time.Sleep(10 * time.Second) // the program starts its relay late
		runRelay(t, db, outbox.SQLite, srv.Client(), outbox.Options{})
		srv.Advance(0)
		require.Equal(t, []string{"[2]"}, got)
		require.Empty(t, entries(t, db))
		job, err := srv.Client().Get(t.Context(), "close-1")
		require.NoError(t, err)
		require.Equal(t, began.Add(30*time.Minute), job.NextAttemptAt.Local())
		require.Equal(t, began.Add(time.Hour), job.ExpiresAt.Local())
		_, err = srv.Client().Get(t.Context(), "close-3")
		require.ErrorIs(t, err, client.ErrNotFound)

		srv.Advance(30*time.Minute - 10*time.Second - time.Second)
		require.Len(t, got, 1)
		srv.Advance(time.Second)
		require.Equal(t, []string{"[2]", "[1]"}, got)
	})
}

func TestRelay_KeepsRefusedJobsWithTheirProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := clienttest.New(t, http.NotFoundHandler())
		db := openSQLite(t)
		_, err := srv.Client().Register(t.Context(), client.Job{ID: "taken", URL: "https://shop.example/other"})
		require.NoError(t, err)
		var logs testkit.Log
		relay, _ := runRelay(t, db, outbox.SQLite, srv.Client(),
			outbox.Options{Poll: time.Minute, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
		synctest.Wait()
		add(t, db, outbox.SQLite,
			client.Job{ID: "taken", URL: "https://shop.example/close"},
			client.Job{ID: "bad", URL: "ftp://shop.example/"},
			client.Job{ID: "good", URL: "https://shop.example/close"},
		)
		relay.Wake()
		srv.Advance(0)
		_, err = srv.Client().Get(t.Context(), "good")
		require.NoError(t, err)
		left := entries(t, db)
		require.Len(t, left, 2)
		require.Contains(t, left[0].problem, "409 id_taken")
		require.Contains(t, left[0].problem, "/url")
		require.Contains(t, left[1].problem, "422 invalid_field")
		for i, id := range []string{"taken", "bad"} {
			require.Equal(t, id, left[i].id)
			require.Equal(t, 1, left[i].tries)
			require.InDelta(t, 10*time.Second, left[i].next, float64(20*time.Millisecond))
		}
		require.Contains(t, logs.String(), "jobs=2")
		stats, err := relay.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(2), stats.Jobs)
		require.Equal(t, int64(2), stats.Refused)
		require.WithinDuration(t, time.Now(), stats.OldestAddedAt, time.Second)

		srv.Advance(time.Minute)
		require.Equal(t, 2, entries(t, db)[1].tries)
		srv.Advance(2 * time.Hour)
		require.InDelta(t, 9+1, entries(t, db)[1].tries, 2) // 10 s, 20 s, … 1 h
		require.InDelta(t, time.Hour, entries(t, db)[1].next, float64(time.Hour))

		_, err = db.ExecContext(t.Context(), "UPDATE ringback_outbox SET job = ?, next_try_at = 0 WHERE id = 'bad'",
			[]byte(`{"id": "bad", "url": "https://shop.example/"}`))
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), "DELETE FROM ringback_outbox WHERE id = 'taken'")
		require.NoError(t, err)
		relay.Wake()
		srv.Advance(0)
		require.Empty(t, entries(t, db))
		_, err = srv.Client().Get(t.Context(), "bad")
		require.NoError(t, err)
	})
}

func TestRelay_SendsTheJobsOfARefusedRequestApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := clienttest.New(t, http.NotFoundHandler())
		db := openSQLite(t)
		add(t, db, outbox.SQLite, numbered("a", 5)...)
		_, err := db.ExecContext(t.Context(),
			"UPDATE ringback_outbox SET job = ? WHERE id = 'a-2'", []byte(`{"id": "a-2",`))
		require.NoError(t, err)
		runRelay(t, db, outbox.SQLite, srv.Client(), outbox.Options{})
		srv.Advance(0)
		left := entries(t, db)
		require.Len(t, left, 1)
		require.Equal(t, "a-2", left[0].id)
		require.Contains(t, left[0].problem, "400 invalid_json")
		for _, id := range []string{"a-0", "a-1", "a-3", "a-4"} {
			_, err := srv.Client().Get(t.Context(), id)
			require.NoError(t, err)
		}
	})
}

// A proxy that takes smaller requests than Ringback refuses only the job that is too large.
func TestRelay_SendsLessToAProxyWithASmallerBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		srv.before = func(ids []string) (*http.Response, error) {
			if len(ids) < 3 && ids[0] != "a-2" {
				return nil, nil
			}
			return &http.Response{
				StatusCode: http.StatusRequestEntityTooLarge,
				Body:       io.NopCloser(strings.NewReader("<html>")),
			}, nil
		}
		add(t, db, outbox.SQLite, numbered("a", 5)...)
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
		synctest.Wait()
		require.ElementsMatch(t, []string{"a-0", "a-1", "a-3", "a-4"}, srv.registered())
		left := entries(t, db)
		require.Len(t, left, 1)
		require.Equal(t, 1, left[0].tries)
	})
}

func TestRelay_WakesAtASignalOrAfterPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		relay, _ := runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{Poll: time.Hour})
		synctest.Wait()
		add(t, db, outbox.SQLite, numbered("a", 250)...)
		synctest.Wait()
		require.Empty(t, srv.registered())
		relay.Wake()
		synctest.Wait()
		require.Equal(t, idsOf(numbered("a", 250)), srv.registered(), "in the order of insertion")
		require.Equal(t, []int{100, 100, 50}, srv.batchSizes())
		require.Empty(t, entries(t, db))

		add(t, db, outbox.SQLite, client.Job{ID: "b"})
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, srv.registered(), 251)
	})
}

func TestRelay_BoundsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		large := strings.Repeat("x", 1<<20)
		var jobs []client.Job
		for _, j := range numbered("a", 5) {
			j.Body = large
			jobs = append(jobs, j)
		}
		jobs = append(jobs, client.Job{ID: "huge", Body: make([]byte, 3<<20+1)}, client.Job{ID: "small"})
		add(t, db, outbox.SQLite, jobs...)
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
		synctest.Wait()
		require.Equal(t, idsOf(jobs), srv.registered())
		require.Equal(t, []int{3, 2, 1, 1}, srv.batchSizes())
		require.Less(t, srv.largest, 6<<20)
	})
}

func TestRelay_RetriesFaultsOfRingback(t *testing.T) {
	faults := map[string]func() (*http.Response, error){
		"no connection": func() (*http.Response, error) { return nil, errors.New("connection refused") },
		"unauthorized": func() (*http.Response, error) {
			return answer(401, client.Problem{Code: "unauthorized"}), nil
		},
		"unavailable": func() (*http.Response, error) {
			return answer(503, client.Problem{Code: "store_unavailable", RetryAfterMS: new(int64(1000))}), nil
		},
		"a proxy": func() (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusBadGateway, Body: io.NopCloser(strings.NewReader("<html>"))},
				nil
		},
		"a proxy that refuses": func() (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusBadRequest, Body: io.NopCloser(strings.NewReader("<html>"))},
				nil
		},
		"other results": func() (*http.Response, error) { return answer(200, map[string]any{"results": []any{}}), nil },
		"broken off": func() (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK,
				Body:       io.NopCloser(io.MultiReader(strings.NewReader(`{"results": [{`), brokenReader{})),
			}, nil
		},
	}
	for name, fault := range faults {
		for _, registered := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				db, srv := openSQLite(t), newServer()
				var requests atomic.Int64
				failing := func() (*http.Response, error) {
					requests.Add(1)
					return fault()
				}
				if registered { // and the answer is lost
					srv.after = failing
				} else {
					srv.before = func([]string) (*http.Response, error) { return failing() }
				}
				add(t, db, outbox.SQLite, numbered("a", 3)...)
				runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				require.InDelta(t, 4+120/7.5, requests.Load(), 12,
					"%s: it must wait between tries, and not give up", name)
				for _, e := range entries(t, db) {
					require.Zero(t, e.tries, name)
				}
				srv.set(func() { srv.before, srv.after, srv.ids = nil, nil, nil })
				time.Sleep(15 * time.Second)
				require.Equal(t, idsOf(numbered("a", 3)), srv.registered(), name)
				require.Empty(t, entries(t, db), name)
			})
		}
	}
}

// brokenReader is a connection that broke.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRelay_RetriesJobsThatTheStoreCannotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		away := &client.Problem{Status: 503, Code: "store_unavailable", RetryAfterMS: new(int64(2000))}
		for _, j := range numbered("away", 150) { // of a shard, say
			srv.problems[j.ID] = away
		}
		add(t, db, outbox.SQLite, numbered("away", 150)...)
		add(t, db, outbox.SQLite, numbered("good", 10)...)
		relay, _ := runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
		synctest.Wait()
		require.Equal(t, []int{100}, srv.batchSizes(), "if the store takes no job, the next ones wait")
		time.Sleep(5 * time.Second)
		require.Equal(t, idsOf(numbered("good", 10)), srv.registered(), "those behind do not wait for them")
		time.Sleep(10 * time.Minute)
		left := entries(t, db)
		require.Len(t, left, 150)
		require.Less(t, left[0].next, time.Minute+time.Second)
		require.InDelta(t, 2*(6+9), len(srv.batchSizes()), 8) // 2 s, 2 s, 4 s, … 1 min
		require.Zero(t, left[0].tries, "they were not refused")
		stats, err := relay.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(150), stats.Jobs)
		require.Zero(t, stats.Refused)
		srv.set(func() { srv.problems = nil })
		time.Sleep(time.Minute + 10*time.Second)
		require.Len(t, srv.registered(), 160)
	})
}

// Many jobs of a shard that is away do not hold up those of the others, nor does one beside jobs that are refused.
func TestRelay_GoesOnWithOthersWhileAShardIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		for i, j := range numbered("away", 1000) {
			srv.problems[j.ID] = &client.Problem{Status: 503, Code: "store_unavailable", RetryAfterMS: new(int64(2000))}
			if i%100 > 0 && i >= 500 {
				srv.problems[j.ID] = &client.Problem{Status: 422, Code: "invalid_field"}
			}
		}
		add(t, db, outbox.SQLite, numbered("away", 1000)...)
		add(t, db, outbox.SQLite, numbered("good", 10)...)
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, idsOf(numbered("good", 10)), srv.registered())
	})
}

// A quota is that of all jobs, so the relay does not try each of them.
func TestRelay_WaitsForAQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		for _, j := range numbered("a", 1000) {
			srv.problems[j.ID] = &client.Problem{Status: 429, Code: "quota", RetryAfterMS: new(int64(3_600_000))}
		}
		add(t, db, outbox.SQLite, numbered("a", 1000)...)
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, srv.batchSizes(), 1)
		srv.set(func() { srv.problems = nil })
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Len(t, srv.registered(), 1000, "it waits for a minute or so at most")
	})
}

// A quota that a job met over lunch does not make its first refusal wait for an hour.
func TestRelay_CountsRefusalsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		srv.problems["a"] = &client.Problem{Status: 429, Code: "too_many_jobs"}
		add(t, db, outbox.SQLite, client.Job{ID: "a"})
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Contains(t, entries(t, db)[0].problem, "429")
		srv.set(func() { srv.problems["a"] = &client.Problem{Status: 422, Code: "invalid_field"} })
		for entries(t, db)[0].tries == 0 {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.InDelta(t, 10*time.Second, entries(t, db)[0].next, float64(2*time.Second))
	})
}

// New rows, of which there may always be more, do not keep those waiting that were tried before.
func TestRelay_TakesTurnsBetweenNewRowsAndThoseTriedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		srv.problems["tried"] = &client.Problem{Status: 429, Code: "too_many_jobs"}
		add(t, db, outbox.SQLite, client.Job{ID: "tried"})
		_, stop := runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
		synctest.Wait()
		stop()
		srv.set(func() { srv.problems = nil })
		add(t, db, outbox.SQLite, numbered("new", 1000)...)
		time.Sleep(2 * time.Second)
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
		synctest.Wait()
		require.Equal(t, slices.Insert(idsOf(numbered("new", 1000)), 100, "tried"), srv.registered())
	})
}

func TestRelay_RetriesFaultsOfTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		var logs testkit.Log
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{Logger: slog.New(slog.NewTextHandler(&logs, nil))})
		synctest.Wait()
		add(t, db, outbox.SQLite, client.Job{ID: "a"})
		time.Sleep(2 * time.Second)
		require.Len(t, srv.registered(), 1)
		for _, statement := range []string{"ALTER TABLE ringback_outbox RENAME TO " +
			"away", "INSERT INTO away (id, job, size, added_at) VALUES ('b', '{\"id\":\"b\"}', 11, 0)"} {
			_, err := db.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Contains(t, logs.String(), "no such table")
		require.Less(t, strings.Count(logs.String(), "\n"), 25)
		_, err := db.ExecContext(t.Context(), "ALTER TABLE away RENAME TO ringback_outbox")
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"a", "b"}, srv.registered())
	})
}

func TestRelay_ClaimsRowsThatAreAheadWithinALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{Lease: 10 * time.Second})
		synctest.Wait()
		add(t, db, outbox.SQLite, client.Job{ID: "a"}) // by a relay that died, and then the clock was set back
		_, err := db.ExecContext(t.Context(), "UPDATE ringback_outbox SET next_try_at = ?",
			time.Now().Add(10*time.Minute).UnixMilli())
		require.NoError(t, err)
		time.Sleep(11 * time.Second)
		require.Equal(t, []string{"a"}, srv.registered())
	})
}

func TestRelay_SaysThatTheTableIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		db.SetMaxOpenConns(1)
		slow := func(d time.Duration) { // a look waits for a connection
			held, err := db.Conn(t.Context())
			require.NoError(t, err)
			time.Sleep(d)
			require.NoError(t, held.Close())
		}
		var logs testkit.Log
		relay, _ := runRelay(t, db, outbox.SQLite, srv.client(t),
			outbox.Options{Logger: slog.New(slog.NewTextHandler(&logs, nil))})
		time.Sleep(1500 * time.Millisecond)
		require.Empty(t, logs.String())

		slow(700 * time.Millisecond) // the look of the second second takes 200 ms
		synctest.Wait()
		stats, err := relay.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, 200*time.Millisecond, stats.LookTime)
		slow(2 * time.Second)
		require.Equal(t, 1,
			strings.Count(logs.String(), `msg="outbox table is slow, jobs are registered late"`), "once a minute")

		logs.Reset()
		time.Sleep(time.Minute)
		slow(40 * time.Second)
		require.Contains(t, logs.String(), "look=30s", "it ends with half of the lease")
		require.Contains(t, logs.String(), `err="look for rows: context deadline exceeded"`)
	})
}

func TestRelay_KeepsRowsThatCannotBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		_, err := db.ExecContext(t.Context(),
			"CREATE TRIGGER keep BEFORE DELETE ON ringback_outbox BEGIN SELECT RAISE(ABORT, 'full'); END")
		require.NoError(t, err)
		add(t, db, outbox.SQLite, client.Job{ID: "a"})
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
		time.Sleep(59 * time.Second)
		require.Len(t, srv.registered(), 1, "before the end of the lease it is not registered again")
		_, err = db.ExecContext(t.Context(), "DROP TRIGGER keep")
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{"a", "a"}, srv.registered())
		require.Empty(t, entries(t, db))
	})
}

func TestRelay_RepeatsWhatItRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, srv := openSQLite(t), newServer()
		// as a deadlock in MySQL does
		for name, event := range map[string]string{"keep": "DELETE", "unmarked": "UPDATE OF problem"} {
			_, err := db.ExecContext(t.Context(), "CREATE TRIGGER "+name+" BEFORE "+event+
				" ON ringback_outbox BEGIN SELECT RAISE(ABORT, 'deadlock'); END")
			require.NoError(t, err)
		}
		srv.problems["b"] = &client.Problem{Status: 422, Code: "invalid_field"}
		add(t, db, outbox.SQLite, client.Job{ID: "a"}, client.Job{ID: "b"})
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{Poll: time.Hour})
		for _, name := range []string{"keep", "unmarked"} {
			time.Sleep(5 * time.Millisecond)
			_, err := db.ExecContext(t.Context(), "DROP TRIGGER "+name)
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		require.Equal(t, []string{"a"}, srv.registered())
		left := entries(t, db)
		require.Len(t, left, 1)
		require.Equal(t, "b", left[0].id)
		require.Equal(t, 1, left[0].tries)
	})
}

func TestRelay_TakesOverAfterALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, first, second := openSQLite(t), newServer(), newServer()
		hang := make(chan struct{})
		first.after = func() (*http.Response, error) { // the answer of the first relay's request comes after its lease
			<-hang
			return nil, nil
		}
		add(t, db, outbox.SQLite, client.Job{ID: "a"})
		runRelay(t, db, outbox.SQLite, first.client(t), outbox.Options{Lease: 10 * time.Second})
		synctest.Wait()
		_, stop := runRelay(t, db, outbox.SQLite, second.client(t), outbox.Options{Lease: 20 * time.Second})
		second.problems["a"] = &client.Problem{Status: 422, Code: "invalid_field"}
		time.Sleep(9 * time.Second)
		require.Equal(t, 0, entries(t, db)[0].tries)
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, entries(t, db)[0].tries, "the second relay has tried it")
		stop()
		close(hang)
		synctest.Wait()
		require.Len(t, entries(t, db), 1, "the first relay must not change what is not its any more")
		require.Equal(t, 1, entries(t, db)[0].tries)
	})
}

func TestRelay_StopsAtOnceAndReleasesItsRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, db := newServer(), openSQLite(t)
		c, err := client.New("http://ringback.test", client.Options{HTTP: &http.Client{Transport: silent{}}})
		require.NoError(t, err)
		add(t, db, outbox.SQLite, numbered("a", 3)...)
		_, stop := runRelay(t, db, outbox.SQLite, c, outbox.Options{})
		time.Sleep(time.Second)
		require.Positive(t, entries(t, db)[0].next, "reserved")
		began := time.Now()
		stop()
		require.Equal(t, began, time.Now())
		require.Zero(t, entries(t, db)[0].next)
		runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
		synctest.Wait()
		require.Equal(t, idsOf(numbered("a", 3)), srv.registered())
	})
}

func TestRelay_EndsRequestsWithinItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openSQLite(t)
		c, err := client.New("http://ringback.test", client.Options{HTTP: &http.Client{Transport: silent{}}})
		require.NoError(t, err)
		add(t, db, outbox.SQLite, client.Job{ID: "a"})
		runRelay(t, db, outbox.SQLite, c, outbox.Options{Lease: 10 * time.Second})
		time.Sleep(4900 * time.Millisecond)
		require.Positive(t, entries(t, db)[0].next)
		time.Sleep(110 * time.Millisecond)
		require.Zero(t, entries(t, db)[0].next)
	})
}

// silent never answers.
type silent struct{}

func (silent) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}
