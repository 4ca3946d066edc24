package redis

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/store"
)

// rights returns the ACL rules of docs/redis.md, without the user's name and password.
func rights(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/redis.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if rules, ok := strings.CutPrefix(strings.TrimSpace(line), "user ringback on >PASSWORD "); ok {
			return strings.Fields(rules)
		}
	}
	require.Fail(t, "the documentation gives no rules")
	return nil
}

// rightsAfter returns the ACL rules that follow some words of docs/redis.md as code.
func rightsAfter(t *testing.T, words string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/redis.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(strings.ReplaceAll(string(text), "\n", " "), words+" `")
	rules, _, closed := strings.Cut(after, "`")
	require.True(t, found && closed, "the documentation does not say %q", words)
	return strings.Fields(rules)
}

// createUserOnNodes creates the user on every node of a cluster, and returns the URL with it.
func createUserOnNodes(t *testing.T, servers *redistest.Cluster) string {
	t.Helper()
	for _, node := range servers.Nodes() {
		createUser(t, node.Addr(), rightsAfter(t, "On a cluster also")...)
	}
	return strings.Replace(servers.URL(), "://", "://ringback:secret@", 1)
}

func TestRights_OfSentinelsAreThoseDocumented(t *testing.T) {
	t.Parallel()
	servers := redistest.StartSentinel(t, 1)
	for _, s := range servers.Sentinels() {
		args := []any{"acl", "setuser", "asker", "reset", "on", ">secret"}
		for _, rule := range rightsAfter(t, "needs, on the sentinels:") {
			args = append(args, rule)
		}
		require.NoError(t, client(t, s.Addr()).Do(t.Context(), args...).Err())
	}
	safe, s := openReplicated(t, servers.URL()+"&sentinel_user=asker&sentinel_password=secret")
	insert(t, safe, entry("a")) // a replica without the data would seem to be emptied
	old := servers.Master()
	old.Kill()
	servers.AwaitMaster(old)
	requireRecovery(t, func() error { return s.Ping(t.Context()) })
	requireWakeup(t, s, 0, "b")
}

func TestRights_LetAWaitBeInterrupted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	createUser(t, server.Addr())
	s := open(t, Options{URL: strings.Replace(server.URL(), "://", "://ringback:secret@", 1), Logger: quiet})
	admin := client(t, server.Addr())
	blocked := func() (connection string) {
		require.Eventually(t, func() bool {
			list, err := admin.Do(t.Context(), "client", "list").Text()
			require.NoError(t, err)
			for line := range strings.Lines(list) {
				if strings.Contains(line, " cmd=blpop ") && strings.Contains(line, " flags=b ") {
					connection, _, _ = strings.Cut(line, " ")
				}
			}
			return connection != ""
		}, time.Minute, time.Millisecond)
		return connection
	}
	var connections []string
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		waits.Go(func() { _, _ = s.Shards()[0].Wait(ctx, store.WaitOptions{Groups: []string{store.GroupPush}}) })
		connections = append(connections, blocked())
		cancel()
		waits.Wait()
	}
	require.Len(t, slices.Compact(connections), 1, "an interrupted wait keeps its connection")
}

// createUser creates a user on a server with the rights of docs/redis.md and more.
func createUser(t *testing.T, addr string, more ...string) {
	t.Helper()
	args := []any{"acl", "setuser", "ringback", "reset", "on", ">secret"}
	for _, rule := range append(rights(t), more...) {
		args = append(args, rule)
	}
	require.NoError(t, client(t, addr).Do(t.Context(), args...).Err())
}

// requireAllRightsUsed fails the test if a command of a right was called on none of the servers.
func requireAllRightsUsed(t *testing.T, addrs ...string) {
	t.Helper()
	stats := ""
	for _, addr := range addrs {
		one, err := client(t, addr).Info(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		stats += one
	}
	for _, rule := range rights(t) {
		if name, ok := strings.CutPrefix(rule, "+"); ok {
			require.Contains(t, stats, "cmdstat_"+name+":", "an unnecessary right")
		}
	}
}
