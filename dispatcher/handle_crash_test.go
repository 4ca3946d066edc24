package dispatcher_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/sqlite"
)

const (
	// handlerProcess is the variable with which this test binary is a program with a handler: the folder of its
	// database.
	handlerProcess = "RINGBACK_TEST_HANDLER_PROCESS"
	handlerLines   = "RINGBACK_TEST_HANDLER_LINES"
	handledJobs    = 40
)

// runHandlerProcess registers jobs, handles them, and prints each step, until all are delivered. After as many lines as
// the variable handlerLines says, if any, it waits to be killed.
func runHandlerProcess(dir string) {
	lines, _ := strconv.Atoi(os.Getenv(handlerLines))
	var mu sync.Mutex
	step := func(text ...any) {
		mu.Lock()
		fmt.Println(text...)
		if lines--; lines == 0 {
			select {}
		}
		mu.Unlock()
	}
	ctx := context.Background()
	defaults := sqlite.Defaults(policy.Builtin())
	st, err := sqlite.Open(ctx,
		sqlite.Options{Path: filepath.Join(dir, "jobs.db"), Limits: defaults.Limits(), Logger: quiet})
	if err != nil {
		panic(err)
	}
	d, err := dispatcher.New(dispatcher.Options{Store: st, Defaults: defaults, Logger: quiet})
	if err != nil {
		panic(err)
	}
	d.Handle("orders", func(_ context.Context, j *dispatcher.Job) error {
		step("begin", j.ID)
		step("end", j.ID)
		return nil
	})
	jobs := make([]job.New, handledJobs)
	for i := range jobs {
		jobs[i].Spec = job.Spec{ID: fmt.Sprint("job-", i), Queue: job.Queue{Topic: "orders", Lane: fmt.Sprint(i % 3)}}
	}
	for _, r := range d.Register(ctx, jobs) {
		if r.Err != nil {
			panic(r.Err)
		}
	}
	go func() { _ = d.Run(ctx) }()
	for {
		stats, err := d.TopicStats(ctx, store.StatsFilter{Namespace: job.DefaultNamespace, Topics: []string{"orders"}})
		if err == nil && len(stats) == 1 && stats[0].Delivered == handledJobs {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	d.Close()
	if err := st.Close(); err != nil {
		panic(err)
	}
	fmt.Println("done")
}

func TestHandle_LosesNoJobWhenItsProcessIsKilled(t *testing.T) {
	dir := t.TempDir()
	ended := make(map[string]int)
	// run runs a process until it has printed so many lines, and kills it then; it reports whether the process was
	// done.
	run := func(lines int) (done bool) {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), handlerProcess+"="+dir, handlerLines+"="+strconv.Itoa(lines))
		process.Stderr = os.Stderr
		stdout, err := process.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, process.Start())
		for printed := bufio.NewScanner(stdout); printed.Scan(); lines-- {
			step, id, _ := strings.Cut(printed.Text(), " ")
			done = done || step == "done"
			if step == "end" {
				ended[id]++
			}
			if lines == 1 {
				require.NoError(t, process.Process.Kill())
			}
		}
		err = process.Wait()
		require.Equal(t, done, err == nil, "%v", err)
		return done
	}
	for _, lines := range []int{1, 8, 15} { // in a call, and before its settlement
		require.False(t, run(lines))
	}
	require.True(t, run(0))
	require.Len(t, ended, handledJobs)
	st, err := sqlite.Open(t.Context(), sqlite.Options{
		Path:   filepath.Join(dir, "jobs.db"),
		Limits: sqlite.Defaults(policy.Builtin()).Limits(), Logger: quiet,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	d, err := dispatcher.New(dispatcher.Options{Store: st, Logger: quiet, RegisterOnly: true})
	require.NoError(t, err)
	lost := 0
	for i := range handledJobs {
		j, err := d.Get(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: fmt.Sprint("job-", i)})
		require.NoError(t, err)
		require.Equal(t, job.Delivered, j.State)
		for _, a := range j.History {
			if a.Kind == job.KindLost {
				lost++
			}
		}
	}
	require.Positive(t, lost, "some calls were interrupted")
}

func TestHandle_OnRedis(t *testing.T) {
	server := miniredis.RunT(t)
	st, err := redis.Open(t.Context(), redis.Options{URL: "redis://" + server.Addr(), Logger: quiet})
	require.NoError(t, err)
	calls := make(chan *dispatcher.Job, 1)
	r := start(t, dispatcher.Options{
		Store:     st,
		Deliverer: &receiver{answer: status(200)},
	}, func(d *dispatcher.Dispatcher) {
		d.Handle("orders", func(_ context.Context, j *dispatcher.Job) error { calls <- j; return nil })
	})
	made := r.order(t)
	require.Equal(t, made.ID, (<-calls).ID)
	delivered := func() bool { return r.get(t, made.Ref()).State == job.Delivered }
	require.Eventually(t, delivered, 5*time.Minute, time.Millisecond)
}
