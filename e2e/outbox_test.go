package e2e

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	ringback "github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/outbox"
	"github.com/ringback/ringback/internal/testkit"
)

func TestOutbox_SurvivesKillsOfTheProgramAndOfRingback(t *testing.T) {
	t.Parallel()
	kills := testkit.Of(6, 12)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newReceiver(t)
	store := newSQLite(t)
	p := start(t, store)
	// Ringback has another port after a restart: the program calls it through a proxy.
	var target atomic.Pointer[string]
	target.Store(&p.url)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(req *httputil.ProxyRequest) {
			u, _ := url.Parse(*target.Load())
			req.SetURL(u)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, 0),
	})
	t.Cleanup(proxy.Close)
	o := outboxProgram{db: filepath.Join(t.TempDir(), "shop.db"), api: proxy.URL, receiver: r.URL + "/ok"}

	var killed sync.WaitGroup
	for life := range kills {
		running := p
		step := random.IntN(60)
		if life%4 == 3 { // some lives are long
			step += 200
		}
		o.run(t, life, func(n int, _ string) bool {
			if life%2 == 1 && n == step/2 { // Ringback dies while the program goes on
				killed.Go(running.kill)
			}
			return n < step
		})
		if killed.Wait(); life%2 == 1 {
			p = start(t, store)
			target.Store(&p.url)
		}
	}
	o.run(t, -1, func(int, string) bool { return true }) // until the outbox is empty

	committed := o.committed(t)
	sum := ended(t, p)
	require.Equal(t, int64(len(committed)), sum.Registered, sum.String())
	require.Equal(t, sum.Registered, sum.Delivered, sum.String())
	r.repeated(t, committed)
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(t, r.byID, len(committed), "nothing arrives that was not committed")
	t.Logf("%d jobs over %d kills, %d requests", len(committed), kills, r.all)
}

// outboxProgram is a program that adds jobs in transactions and relays them. It runs in a process, which is this test's
// binary.
type outboxProgram struct{ db, api, receiver string }

// Variables of the process.
const (
	outboxDB       = "E2E_OUTBOX_DB"
	outboxAPI      = "E2E_OUTBOX_API"
	outboxReceiver = "E2E_OUTBOX_RECEIVER"
	outboxLife     = "E2E_OUTBOX_LIFE" // -1: add nothing, and end when the outbox is empty
)

// run runs the program. It waits at each step until goOn is true, and is killed when it is false.
func (o outboxProgram) run(t *testing.T, life int, goOn func(n int, step string) bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = cleanEnv(outboxDB+"="+o.db, outboxAPI+"="+o.api, outboxReceiver+"="+o.receiver,
		outboxLife+"="+strconv.Itoa(life))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	steps := bufio.NewScanner(stdout)
	for n := 0; steps.Scan(); n++ {
		if !goOn(n, steps.Text()) {
			require.NoError(t, cmd.Process.Kill())
			break
		}
		_, _ = io.WriteString(stdin, "\n") // it has ended if that fails
	}
	_, _ = io.Copy(io.Discard, stdout)
	if err := cmd.Wait(); life < 0 {
		require.NoError(t, err)
	}
}

// committed returns the ids of the program's committed orders.
func (o outboxProgram) committed(t *testing.T) []string {
	t.Helper()
	db, err := sql.Open("sqlite", o.db)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.QueryContext(t.Context(), "SELECT job FROM orders")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	var ids []string
	for rows.Next() {
		var id string
		require.NoError(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(t, rows.Err())
	require.NotEmpty(t, ids)
	return ids
}

// runOutboxProgram is the program's main function.
func runOutboxProgram() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db, err := sql.Open("sqlite",
		"file:"+os.Getenv(outboxDB)+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, outbox.SQLite.Schema()+
		"CREATE TABLE IF NOT EXISTS orders (job TEXT PRIMARY KEY)"); err != nil {
		return err
	}
	var s stepper
	c, err := ringback.New(os.Getenv(outboxAPI), ringback.Options{HTTP: &http.Client{Transport: &s}})
	if err != nil {
		return err
	}
	relay := outbox.NewRelay(db, outbox.SQLite, c, outbox.Options{
		Poll: 20 * time.Millisecond, Lease: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	go relay.Run(ctx)
	if life := os.Getenv(outboxLife); life != "-1" {
		for n := 0; ; n++ {
			if err := s.order(ctx, db, life, n); err != nil {
				return err
			}
			relay.Wake()
		}
	}
	for {
		stats, err := relay.Stats(ctx)
		if err != nil || stats.Jobs == 0 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stepper announces each step of the program, and waits until it may go on.
type stepper struct{ mu sync.Mutex }

func (s *stepper) step(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Println(name)
	var line [1]byte
	_, _ = os.Stdin.Read(line[:])
}

// RoundTrip makes a request of the relay.
func (s *stepper) RoundTrip(req *http.Request) (*http.Response, error) {
	s.step("request")
	res, err := http.DefaultTransport.RoundTrip(req)
	s.step("answered")
	return res, err
}

// order writes an order and its jobs. Every third is rolled back.
func (s *stepper) order(ctx context.Context, db *sql.DB, life string, n int) error {
	s.step("begin")
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for i := range 1 + n%3 {
		id := fmt.Sprintf("o-%s-%d-%d", life, n, i)
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (job) VALUES (?)", id); err != nil {
			return err
		}
		s.step("written")
		if err := outbox.SQLite.Add(ctx, tx,
			ringback.Job{ID: id, URL: os.Getenv(outboxReceiver), Timeout: time.Second, Body: n}); err != nil {
			return err
		}
		s.step("added")
	}
	if n%3 == 2 {
		err = tx.Rollback()
		s.step("rolled back")
		return err
	}
	err = tx.Commit()
	s.step("committed")
	return err
}
