package main

import (
	"database/sql"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/sqlite"
)

// insertOne inserts a waiting job.
func insertOne(t *testing.T, s store.Store) {
	t.Helper()
	_, err := s.Shards()[0].Insert(
		t.Context(), store.NewToken(), []store.NewJob{{New: job.New{Delay: time.Hour, Spec: job.Spec{
			ID: "waiting", Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "shop.example:443"},
			URL: "https://shop.example/hooks", Method: "POST",
		}}}},
	)
	require.NoError(t, err)
}

func TestVerify_ChecksAndRepairsASQLiteStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := sqlite.Open(t.Context(), sqlite.Options{
		Path: path, Limits: sqlite.Defaults(policy.Builtin()).Limits(), Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	insertOne(t, s)
	verify := func(args ...string) (code int, stdout, stderr string) {
		t.Helper()
		return try(t, []string{"RINGBACK_STORE=sqlite:" + path}, append([]string{"verify"}, args...)...)
	}
	code, stdout, _ := verify()
	require.Equal(t, exitOK, code, "beside the process")
	require.Contains(t, stdout, "\n1 jobs, no fault\n")
	code, _, stderr := verify("--repair")
	require.Equal(t, exitFault, code)
	require.Contains(t, stderr, "another process uses the database")
	require.Contains(t, stderr, "repaired only while no process uses it")
	require.NoError(t, s.Close())

	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "UPDATE topics SET registered = 7")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	code, stdout, stderr = verify()
	require.Equal(t, exitFault, code)
	require.Contains(t, stdout, "FAULT counter: default/orders: registered is 7, counted 1\n  means: ")
	require.Contains(t, stderr, "1 faults are left")
	code, stdout, _ = verify("--repair")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "REPAIRED counter: default/orders: registered is 7, counted 1\n")
	code, stdout, _ = verify("-o", "json")
	require.Equal(t, exitOK, code)
	require.EqualValues(t, 1, reports(t, stdout)[0]["registered"])
}

// reports parses a report in JSON.
func reports(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	return all
}

func TestVerify_ChecksAndRepairsRedisStoresInUse(t *testing.T) {
	servers := []*miniredis.Miniredis{miniredis.RunT(t), miniredis.RunT(t)}
	var args []string
	for i, server := range servers {
		s, err := redis.Open(t.Context(),
			redis.Options{URL: "redis://" + server.Addr(), Prefix: "shop", Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		insertOne(t, s)
		args = append(args, "--store", []string{"main", "eu"}[i]+"=redis://"+server.Addr())
	}
	args = append([]string{"verify", "--redis-prefix=shop", "--output=json"}, args...)
	code, stdout, stderr := try(t, nil, args...)
	require.Equal(t, exitOK, code, "%s%s", stdout, stderr)

	for _, key := range servers[1].Keys() {
		if strings.HasSuffix(key, ":due:1") {
			servers[1].Del(key)
		}
	}
	code, stdout, _ = try(t, nil, args...)
	require.Equal(t, exitFault, code)
	all := reports(t, stdout)
	require.Len(t, all, 2)
	require.Empty(t, all[0]["faults"])
	require.Equal(t, "eu", all[1]["store"])
	require.Contains(t, stdout, `"kind": "unplaced"`)
	code, stdout, _ = try(t, nil, append(args, "--repair")...)
	require.Equal(t, exitOK, code, stdout)
	require.EqualValues(t, 0, reports(t, stdout)[1]["left"])
	code, stdout, _ = try(t, nil, args...)
	require.Equal(t, exitOK, code, stdout)
}

func TestVerify_RefusesBadInput(t *testing.T) {
	for says, args := range map[string][]string{
		"store: must be sqlite:FILE":    {"--store=postgres://a"},
		"two stores have the name main": {"--store=redis://a", "--store=redis://b"},
		"redis-prefix: ":                {"--redis-prefix=a b"},
		"--output must be one of":       {"-o", "xml"},
	} {
		code, stdout, stderr := try(t, nil, append([]string{"verify"}, args...)...)
		require.Equal(t, exitUsage, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, says)
	}
	missing := filepath.Join(t.TempDir(), "none.db")
	for _, args := range [][]string{{}, {"--repair"}} {
		code, _, stderr := try(t, nil, append([]string{"verify", "--store=sqlite:" + missing}, args...)...)
		require.Equal(t, exitFault, code)
		require.Contains(t, stderr, "no such file")
		require.NoFileExists(t, missing)
	}
	server := miniredis.RunT(t)
	code, _, stderr := try(t, nil, "verify", "--store=redis://"+server.Addr())
	require.Equal(t, exitFault, code)
	require.Contains(t, stderr, "there are no data under the prefix rb")
	require.Empty(t, server.Keys())
}
