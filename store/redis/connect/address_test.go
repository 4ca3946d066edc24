package connect

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]struct {
		form   form
		hosts  []string
		addr   string
		db     int
		user   string
		secret string
		shown  string
	}{
		"redis://localhost": {
			addr: "localhost:6379", shown: "redis://localhost:6379/0",
		},
		"redis://u:p%40ss@r.example:1/3": {
			addr: "r.example:1", db: 3, user: "u", secret: "p@ss", shown: "redis://u:xxxxx@r.example:1/3",
		},
		"unix://:pw@/run/redis.sock?db=2": {
			addr: "/run/redis.sock", db: 2, secret: "pw", shown: "unix://:xxxxx@/run/redis.sock",
		},
		"redis+cluster://a,b:7001,[::1]:7002,[::2]": {form: cluster, hosts: []string{
			"a:6379", "b:7001",
			"[::1]:7002", "[::2]:6379",
		}, addr: "a:6379", shown: "redis+cluster://a:6379,b:7001,[::1]:7002,[::2]:6379"},
		"redis+cluster://u:pw@a:1,b:2/0": {
			form: cluster, hosts: []string{"a:1", "b:2"},
			addr: "a:1", user: "u", secret: "pw", shown: "redis+cluster://u:xxxxx@a:1,b:2",
		},
		"redis+sentinel://:pw@a,b:2/4?master_name=shop": {
			form: sentinel, hosts: []string{"a:26379", "b:2"},
			addr: "a:26379", db: 4, secret: "pw", shown: "redis+sentinel://:xxxxx@a:26379,b:2/4?master_name=shop",
		},
		"redis://h:1?client_name=a+b": {addr: "h:1", shown: "redis://h:1/0"},
		"rediss+sentinel://a?master_name=m&sentinel_user=su": {
			form: sentinel, hosts: []string{"a:26379"},
			addr: "a:26379", shown: "rediss+sentinel://a:26379/0?master_name=m",
		},
	} {
		a, err := ParseAddress(text)
		require.NoError(t, err, text)
		require.Equal(t, want.form, a.form, text)
		require.Equal(t, want.hosts, a.hosts, text)
		if want.form != sentinel { // the sentinels' ports differ from what go-redis adds
			require.Equal(t, want.addr, a.options.Addr, text)
		}
		require.Equal(t, want.db, a.options.DB, text)
		require.Equal(t, want.user, a.options.Username, text)
		require.Equal(t, want.secret, a.options.Password, text)
		require.Equal(t, want.shown, a.String())
	}
}

func TestClient_GetsTheOptionsOfItsAddress(t *testing.T) {
	for _, form := range []string{"redis://a/?", "redis+cluster://a/?", "redis+sentinel://a/?master_name=m&"} {
		a, err := ParseAddress(form + "read_timeout=7s&pool_size=3&client_name=me")
		require.NoError(t, err)
		require.Equal(t, "7s", a.options.ReadTimeout.String())
		c := New(a, Wait{}, slog.New(slog.DiscardHandler))
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		u := c.address.universal(&c.address.options)
		f, n := u.Failover(), u.Cluster()
		require.Equal(t, []any{"7s", 3, "me"}, []any{f.ReadTimeout.String(), f.PoolSize, f.ClientName})
		require.Equal(t, []any{"7s", 3, "me"}, []any{n.ReadTimeout.String(), n.PoolSize, n.ClientName})
	}
	a, err := ParseAddress("redis+sentinel://a?master_name=m&sentinel_user=su&sentinel_password=s+p%26")
	require.NoError(t, err)
	f := a.universal(&a.options).Failover()
	require.Equal(t, []string{"m", "su", "s+p&"}, []string{f.MasterName, f.SentinelUsername, f.SentinelPassword})
}

func TestParseAddress_ErrorsContainNoPassword(t *testing.T) {
	for _, text := range []string{
		"", "localhost", "http://u:pw@h", "redis+ring://h", "unix+cluster:///x",
		"redis+cluster://", "redis+cluster://a,,b", "redis+cluster://u:pw@a:1:2,b", "redis://u:pw#x@h",
		"redis://u:pw/x@h", "redis+sentinel://u:pw@a", "redis+cluster://u:pw@a/3",
		"redis://u:pw@h/notanumber", "redis://u:pw@h?colour=pw", "redis+cluster://:p%w@a", "redis://u:pw@h?tls_ca=/x",
		"redis://u:pw@h:1,h2:2", "unix://u:pw@run/redis.sock", "unix://run/redis.sock", "redis+cluster://a,b:port",
		"redis+cluster://a,b c", "redis://h?read_timeout=-1", "redis://h?dial_timeout=0", "redis://", "redis:///1",
		"rediss://u:pw@h?tls_cert=/x", "rediss://u:pw@h?tls_ca=/there/is/none",
	} {
		_, err := ParseAddress(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "pw", text)
	}
	// The head of a password that was not encoded must not be taken for a port either.
	_, err := ParseAddress("redis://127.0.0.1:1#s3cret@127.0.0.1")
	require.Equal(t, errURL, err)
	a, err := ParseAddress("redis+sentinel://u:pw@a?master_name=m&sentinel_password=pw")
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(a), "pw")
}

func FuzzParseAddress(f *testing.F) {
	f.Add("redis+sentinel://u:pw@a:1,b/2?master_name=m")
	f.Add("redis+cluster://[::1]:1,b")
	f.Add("rediss://u:p@h:1/2?read_timeout=1s")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = ParseAddress(text) })
}
