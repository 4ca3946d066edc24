package redis

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rights are the rules for a Redis user that the documentation gives, without its name and password.
func rights(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if rules, ok := strings.CutPrefix(strings.TrimSpace(line), "user ringback on >PASSWORD "); ok {
			return strings.Fields(rules)
		}
	}
	require.Fail(t, "the documentation gives no rules")
	return nil
}

// restrict makes a user on a server who may do what the documentation says, and no more.
func restrict(t *testing.T, addr string, more ...string) {
	t.Helper()
	args := []any{"acl", "setuser", "ringback", "reset", "on", ">secret"}
	for _, rule := range append(rights(t), more...) {
		args = append(args, rule)
	}
	require.NoError(t, client(t, addr).Do(t.Context(), args...).Err())
}

// usesAll fails for a right that nobody made use of.
func usesAll(t *testing.T, addr string) {
	t.Helper()
	stats, err := client(t, addr).Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for _, rule := range rights(t) {
		if name, ok := strings.CutPrefix(rule, "+"); ok {
			require.Contains(t, stats, "cmdstat_"+name+":", "a right that nobody needs")
		}
	}
}
