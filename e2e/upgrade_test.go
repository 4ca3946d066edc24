package e2e

import (
	encoding "encoding/binary"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// versions runs a test in both directions: an upgrade and a downgrade.
func versions(t *testing.T, test func(t *testing.T, from, to string)) {
	t.Helper()
	t.Parallel()
	old := previous(t)
	t.Run("from old to new", func(t *testing.T) {
		t.Parallel()
		test(t, old, binary)
	})
	t.Run("from new to old", func(t *testing.T) {
		t.Parallel()
		test(t, binary, old)
	})
}

func TestUpgrade_TwoVersionsShareARedis(t *testing.T) {
	versions(t, func(t *testing.T, from, to string) {
		store, r := newRedis(t), newReceiver(t)
		a := startProgram(t, from, store) // carries
		call[obj](t, a, http.MethodPut, "/v1/topics/shared", obj{"workers": 1}, http.StatusOK)
		b := startProgram(t, to, store)

		bothDeliver(t, r, a, b)
		for n, pair := range [][2]*process{{a, b}, {b, a}} {
			changesHold(t, r, pair[0], pair[1], fmt.Sprintf("changes-%d", n))
			policiesHold(t, r, pair[0], pair[1], fmt.Sprintf("policies-%d", n))
		}
		require.Equal(t, count(t, a), count(t, b))

		// The one that carries stops, and the other carries on; then the other way round, with a crash.
		code, _ := a.terminate()
		require.Zero(t, code)
		t.Logf("after a stop the other version was %s late", carries(t, r, b, "stopped"))
		a = startProgram(t, from, store)
		b.kill()
		t.Logf("after a crash the other version was %s late", carries(t, r, a, "killed"))
		require.Equal(t, ended(t, a), count(t, startProgram(t, to, store)))
	})
}

// bothDeliver registers at each of two processes, and requires that each delivers some jobs of both.
func bothDeliver(t *testing.T, r *receiver, a, b *process) {
	t.Helper()
	const jobs = 30
	for _, at := range []*process{a, b} {
		var ids []string
		for n := range jobs {
			job := obj{"topic": "shared", "lane": fmt.Sprintf("lane-%d", n), "url": r.URL + "/hold/100ms"}
			ids = append(ids, register(t, at, job).ID)
		}
		byOld := 0
		for _, id := range ids {
			arrivals := r.arrives(t, id, 1)
			require.Len(t, arrivals, 1)
			if arrivals[0].agent == previousAgent {
				byOld++
			}
			require.Equal(t, 1, await(t, a, id, "delivered").AttemptsMade)
			require.Equal(t, get(t, a, id), get(t, b, id), "both read the same")
		}
		require.Positive(t, byOld, "the old version delivers")
		require.Less(t, byOld, jobs, "the new version delivers")
	}
}

// changesHold changes jobs at another process than the one that registered them.
func changesHold(t *testing.T, r *receiver, at, by *process, topic string) {
	t.Helper()
	job := func() view {
		return register(t, at, obj{
			"topic": topic, "url": r.URL + "/fail/1", "body": "old", "headers": obj{"X-Kept": "yes"}, "delay": "1h",
			"ladder": []string{"10ms"}, "labels": obj{"kept": "yes"},
		})
	}
	edited, cancelled, run := job(), job(), job()
	require.Equal(t, get(t, at, edited.ID), get(t, by, edited.ID))
	repeatsHold(t, r, at, by, topic)

	call[view](t, by, http.MethodPatch, "/v1/jobs/"+edited.ID, obj{"body": "new", "delay": "10ms"}, http.StatusOK)
	call[view](t, by, http.MethodDelete, "/v1/jobs/"+cancelled.ID, nil, http.StatusOK)
	call[view](t, by, http.MethodPost, "/v1/jobs/"+run.ID+"/run", nil, http.StatusOK)
	for _, id := range []string{edited.ID, run.ID} {
		done := await(t, at, id, "delivered")
		require.Equal(t, 2, done.AttemptsMade)
		require.Equal(t, done, get(t, by, id))
		require.Equal(t, "yes", r.of(id)[1].header.Get("X-Kept"))
	}
	require.Equal(t, `"new"`, r.of(edited.ID)[0].body)
	require.Equal(t, `"old"`, r.of(run.ID)[0].body)
	require.Equal(t, "cancelled", get(t, at, cancelled.ID).State)

	revived := call[view](t, by, http.MethodPost, "/v1/jobs/"+cancelled.ID+"/revive", nil, http.StatusOK)
	require.Equal(t, 1, revived.Generation)
	await(t, at, cancelled.ID, "delivered")
	type page struct{ Items []view }
	path := "/v1/jobs?state=delivered&topic=" + topic
	require.Len(t, call[page](t, at, http.MethodGet, path, nil, http.StatusOK).Items, 3)
	require.Equal(t, call[page](t, at, http.MethodGet, path, nil, http.StatusOK),
		call[page](t, by, http.MethodGet, path, nil, http.StatusOK))
}

// repeatsHold repeats registrations at another process.
func repeatsHold(t *testing.T, r *receiver, at, by *process, topic string) {
	t.Helper()
	request := obj{
		"id": topic + "-again", "topic": topic + "-again", "lane": "a", "url": r.URL + "/ok?a=1",
		"method": "PUT", "body": obj{"n": 1}, "headers": obj{
			"X-A":           []string{"1", "2"},
			"Authorization": "Bearer s3cret",
		}, "labels": obj{"a": "1"}, "delay": "1h", "expires_in": "2h",
		"ladder": []string{"1s", "2s"}, "retries": 5, "timeout": "3s",
		"on_dead": obj{"url": r.URL + "/callback", "headers": obj{"X-Api-Key": "s3cret"}, "include": []string{"body"}},
	}
	first := call[view](t, at, http.MethodPost, "/v1/jobs", request, http.StatusCreated)
	require.Equal(t, first.ID, call[view](t, by, http.MethodPost, "/v1/jobs", request, http.StatusOK).ID)
	request["retries"] = 6
	call[obj](t, by, http.MethodPost, "/v1/jobs", request, http.StatusConflict)
	call[view](t, at, http.MethodDelete, "/v1/jobs/"+first.ID, nil, http.StatusOK)
}

// policiesHold puts a policy at one process, and requires that another applies it.
func policiesHold(t *testing.T, r *receiver, at, by *process, topic string) {
	t.Helper()
	put := obj{"url": r.URL + "/fail/2", "headers": obj{"X-Policy": topic}, "ladder": []string{"20ms"}, "retries": 1}
	call[obj](t, at, http.MethodPut, "/v1/topics/"+topic, put, http.StatusOK)
	// The new version may say more of a topic than the old one does.
	read := call[obj](t, by, http.MethodGet, "/v1/topics/"+topic, nil, http.StatusOK)
	for field, value := range call[obj](t, at, http.MethodGet, "/v1/topics/"+topic, nil, http.StatusOK) {
		if other, ok := read[field]; ok {
			require.Equal(t, value, other, field)
		}
	}
	job := register(t, by, obj{"topic": topic})
	dead := await(t, by, job.ID, "dead")
	require.Equal(t, "exhausted", dead.Reason)
	for _, a := range r.arrives(t, job.ID, 2) {
		require.Equal(t, topic, a.header.Get("X-Policy"))
	}

	call[obj](t, by, http.MethodPost, "/v1/topics/"+topic+"/pause", nil, http.StatusOK)
	call[view](t, at, http.MethodPost, "/v1/jobs/"+job.ID+"/revive", nil, http.StatusOK)
	other := register(t, at, obj{"topic": topic + "-other", "url": r.URL + "/ok", "delay": "300ms"})
	r.arrives(t, other.ID, 1)
	require.Len(t, r.of(job.ID), 2, "the topic is paused")
	call[obj](t, at, http.MethodPost, "/v1/topics/"+topic+"/resume", nil, http.StatusOK)
	await(t, by, job.ID, "delivered")
}

// carries requires that a process carries due jobs, and returns how late the first one was.
func carries(t *testing.T, r *receiver, p *process, id string) time.Duration {
	t.Helper()
	register(t, p, obj{"id": id, "url": r.URL + "/ok", "delay": "100ms"})
	first := r.arrives(t, id, 1)[0]
	require.False(t, first.began.Before(first.due))
	return first.began.Sub(first.due)
}

func TestUpgrade_RollingAndBackLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	old := previous(t)
	store, r := newRedis(t), newReceiver(t)
	all := []*process{startProgram(t, old, store), startProgram(t, old, store)}
	l := newLoad(t, all[1], 4, busyJobs(r))
	steps := 0
	for _, program := range []string{binary, old} {
		for n := range all {
			steps++
			l.reaches(t, 150*steps)
			l.url.Store(&all[1-n].url) // the clients go on at the other one
			l.grows(t)
			code, _ := all[n].terminate()
			require.Zero(t, code)
			all[n] = startProgram(t, program, store)
		}
	}
	l.reaches(t, l.size()+150)
	sum := l.settles(t, all[0])
	require.Zero(t, l.refused, "a client that goes on at the other process is never refused")
	require.Equal(t, sum, count(t, all[1]))
	require.Equal(t, sum, count(t, startProgram(t, binary, store)))
	require.Empty(t, r.repeated(t, l.accepted))
	require.EqualValues(t, len(l.accepted), sum.Registered)
	var byOld, byNew int
	for _, id := range l.accepted {
		for _, a := range r.of(id) {
			if a.agent == previousAgent {
				byOld++
			} else {
				byNew++
			}
		}
	}
	require.Positive(t, min(byOld, byNew), "both versions deliver")
	t.Logf("%s; %d attempts by the old version, %d by the new one", sum, byOld, byNew)
}

func TestUpgrade_OpensTheOtherVersionsDatabase(t *testing.T) {
	versions(t, func(t *testing.T, from, to string) {
		store, r := newSQLite(t), newReceiver(t)
		a := startProgram(t, from, store)
		policy := obj{
			"url": r.URL + "/ok", "headers": obj{"X-Policy": "kept"},
			"ladder": []string{"10ms"}, "retries": 0,
		}
		call[obj](t, a, http.MethodPut, "/v1/topics/kept", policy, http.StatusOK)
		var waiting []view
		for range 20 {
			job := register(t, a, obj{"topic": "kept", "delay": "1h", "body": strings.Repeat("x", 4096)})
			waiting = append(waiting, get(t, a, job.ID))
		}
		due := register(t, a, obj{"topic": "kept", "delay": "1s"})
		done := register(t, a, obj{"topic": "kept"})
		dead := register(t, a, obj{"topic": "kept", "url": r.URL + "/fail/1"})
		ended := []view{await(t, a, done.ID, "delivered"), await(t, a, dead.ID, "dead")}
		before := count(t, a)
		code, _ := a.terminate()
		require.Zero(t, code)

		b := reopened(t, to, store)
		if b == nil {
			return
		}
		require.Equal(t, before.Registered, count(t, b).Registered)
		for _, v := range slices.Concat(waiting, ended) {
			require.Equal(t, v, get(t, b, v.ID), "what one has written the other reads")
		}
		await(t, b, due.ID, "delivered")
		for _, v := range waiting[:10] {
			call[view](t, b, http.MethodPost, "/v1/jobs/"+v.ID+"/run", nil, http.StatusOK)
		}
		call[view](t, b, http.MethodPost, "/v1/jobs/"+dead.ID+"/revive", nil, http.StatusOK)
		for _, v := range append(waiting[:10:10], dead) {
			require.Equal(t, "delivered", await(t, b, v.ID, "delivered").State)
		}
		require.Equal(t, "kept", r.of(waiting[0].ID)[0].header.Get("X-Policy"))
		added := register(t, b, obj{"topic": "kept", "delay": "1h"})
		sum := count(t, b)
		code, _ = b.terminate()
		require.Zero(t, code)

		if a = reopened(t, from, store); a == nil {
			return
		}
		require.Equal(t, sum, count(t, a))
		for _, v := range append(waiting[10:], added) {
			call[view](t, a, http.MethodPost, "/v1/jobs/"+v.ID+"/run", nil, http.StatusOK)
			await(t, a, v.ID, "delivered")
			require.Len(t, r.of(v.ID), 1)
		}
		require.Zero(t, count(t, a).pending())
	})
}

// reopened starts a version on a database of another version. It returns nil if the newer version has changed the
// schema: then the older one must refuse it with a one-line error.
func reopened(t *testing.T, program, store string) *process {
	t.Helper()
	if program == binary {
		return startProgram(t, program, store)
	}
	own := newSQLite(t)
	code, _ := startProgram(t, program, own).terminate()
	require.Zero(t, code)
	if schema(t, store) <= schema(t, own) {
		return startProgram(t, program, store)
	}
	refuse := exec.CommandContext(t.Context(), program, "serve", "--addr=127.0.0.1:0", "--store="+store)
	refuse.Env = cleanEnv()
	output, err := refuse.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, refuse.ProcessState.ExitCode())
	require.Contains(t, string(output), "newer")
	t.Logf("the old version refuses the new schema: %s", output)
	return nil
}

// schema is the version of a database's schema, four bytes at offset 60 of its file
// (https://sqlite.org/fileformat2.html).
func schema(t *testing.T, store string) uint32 {
	t.Helper()
	file, err := os.Open(strings.TrimPrefix(store, "sqlite:"))
	require.NoError(t, err)
	defer func() { _ = file.Close() }() // it was only read
	version := make([]byte, 4)
	_, err = file.ReadAt(version, 60)
	require.NoError(t, err)
	return encoding.BigEndian.Uint32(version)
}
