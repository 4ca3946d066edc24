package conn

import (
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

func TestLabel_IsRemoved(t *testing.T) {
	for host, dialled := range map[string]string{
		"shop.example":       "shop.example:443",
		"shop.example:8443":  "shop.example:8443",
		"shared.example":     "shared.example:443",
		"127.0.0.1:9000":     "127.0.0.1:9000",
		"[::1]":              "[::1]:443",
		"[::1]:8443":         "[::1]:8443",
		"[fe80::1%25eth0]:1": "[fe80::1%eth0]:1",
	} {
		u, err := url.Parse("https://" + host + "/hook")
		require.NoError(t, err)
		for _, label := range []string{sharedLabel, queueLabel(job.Queue{Topic: "t"})} {
			with := labelled(u, label)
			port := with.Port()
			if port == "" {
				port = "443"
			}
			addr := with.Hostname() + ":" + port
			if u.Host[0] == '[' {
				addr = "[" + with.Hostname() + "]:" + port
			}
			require.Contains(t, addr, label)
			require.Equal(t, dialled, withoutLabel(addr))
		}
		require.NotContains(t, u.Host, "shared.shared", "the request's own URL stays")
	}
}

func TestLabel_DiffersByQueue(t *testing.T) {
	seen := make(map[string]bool)
	for _, queue := range []job.Queue{
		{},
		{Namespace: "a"},
		{Topic: "a"},
		{Lane: "a"},
		{Namespace: "ab"},
		{Namespace: "a", Topic: "b"},
		{Topic: "a", Lane: "b"},
	} {
		label := queueLabel(queue)
		require.False(t, seen[label])
		require.Equal(t, label, queueLabel(queue))
		seen[label] = true
	}
}

func TestHostSet_IsBoundedAndKeepsTheFirst(t *testing.T) {
	s := newHostSet(3)
	for n := range 10 {
		addr := strconv.Itoa(n)
		s.add(addr, job.Queue{Lane: "a"})
		s.add(addr, job.Queue{Lane: "b"})
		queue, ok := s.first(addr)
		require.True(t, ok)
		require.Equal(t, "a", queue.Lane)
		require.LessOrEqual(t, len(s.hosts), 3)
	}
	s.remove("9")
	_, ok := s.first("9")
	require.False(t, ok)
	s.remove("9")
	require.Len(t, s.hosts, 2)
}
