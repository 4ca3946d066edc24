package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestValidate_ReportsAllProblems(t *testing.T) {
	err := Options{
		Addr: "8080", Store: "mysql://x", Shards: Shards{"main": -1}, MaxBody: -1, Grace: time.Millisecond,
		Token: "a b", NoAuth: true, Roles: []Role{"carrier"},
	}.Validate()
	require.Error(t, err)
	problems := strings.Split(err.Error(), "\n")
	var fields []string
	for _, f := range problems {
		field, _, _ := strings.Cut(f, ":")
		fields = append(fields, field)
	}
	require.Equal(t, []string{"addr", "no-auth", "token", "store", "shards", "roles", "max-body", "grace"}, fields)
}

func TestValidate_AcceptsTheZeroOptions(t *testing.T) {
	require.NoError(t, Options{}.Validate())
}

func TestValidate_RequiresATokenBeyondLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "localhost:80", "[::ffff:127.0.0.1]:80"} {
		require.NoError(t, Options{Addr: addr}.Validate(), addr)
	}
	for _, addr := range []string{":80", "0.0.0.0:80", "[::]:80", "10.0.0.1:80", "example.org:80"} {
		require.ErrorContains(t, Options{Addr: addr}.Validate(), "--no-auth", addr)
		require.NoError(t, Options{Addr: addr, Token: "0123456789abcdef"}.Validate(), addr)
		require.NoError(t, Options{Addr: addr, NoAuth: true}.Validate(), addr)
	}
}

func TestValidate_RequiresNoTokenOfAWorker(t *testing.T) {
	o := Options{Addr: "0.0.0.0:80", Store: "redis://localhost"}
	require.Error(t, o.Validate())
	o.Roles = []Role{RoleAPI}
	require.Error(t, o.Validate())
	o.Roles = []Role{RoleWorker}
	require.NoError(t, o.Validate(), "a worker serves only its health")
}

func TestValidate_RequiresBothRolesForSQLite(t *testing.T) {
	for _, role := range []Role{RoleAPI, RoleWorker} {
		require.EqualError(t, Options{Roles: []Role{role}}.Validate(),
			"roles: a sqlite store needs one process with both api and worker, not "+string(role)+" alone")
		require.NoError(t, Options{Roles: []Role{role}, Store: "redis://localhost"}.Validate())
	}
	require.NoError(t, Options{Roles: []Role{RoleWorker, RoleAPI}}.Validate())
}

func TestValidate_BoundsTheDrain(t *testing.T) {
	for _, c := range []struct {
		grace, drain time.Duration
		valid        bool
	}{
		{0, 25 * time.Second, true},
		{0, 25*time.Second + 1, false},
		{0, -1, false},
		{8 * time.Second, 4 * time.Second, true},
		{8 * time.Second, 5 * time.Second, false},
		{MinGrace, 0, true},
	} {
		err := Options{Grace: c.grace, Drain: c.drain}.Validate()
		if c.valid {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "drain: ")
		}
	}
}

func TestParseStore(t *testing.T) {
	for text, want := range map[string]string{
		"sqlite:ringback.db":           "sqlite:ringback.db",
		"sqlite:///var/lib/x.db":       "sqlite:/var/lib/x.db",
		"redis://localhost:6379/2":     "redis://localhost:6379/2",
		"rediss://u:pw@r.example:6380": "rediss://u:xxxxx@r.example:6380/0",
	} {
		name, err := parseStore(text)
		require.NoError(t, err, text)
		require.Equal(t, want, name.String())
	}
	for _, text := range []string{
		"", "ringback.db", "sqlite:", "sqlite::memory:", "redis:", "redis://", "redis:///3",
		"redis://:pw@", "mysql://x", "redis://u:pw@%zz/",
	} {
		_, err := parseStore(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "pw")
	}
}

func TestParseStores(t *testing.T) {
	for text, want := range map[string]string{
		"redis://localhost":         "redis://localhost:6379/0",
		"main=redis://:pw@a/2":      "redis://:xxxxx@a:6379/2",
		"sqlite:/my data/x=y.db":    "sqlite:/my data/x=y.db",
		"sqlite:x.db\neu=redis://a": "main=sqlite:x.db eu=redis://a:6379/0",
		"eu=redis://a  main=sqlite:my x.db\t " +
			"asia-2=unix:///s\n": "main=sqlite:my x.db eu=redis://a:6379/0 asia-2=unix:///s",
		"eu=redis+cluster://a,b:2 redis://a": "main=redis://a:6379/0 eu=redis+cluster://a:6379,b:2",
	} {
		stores, err := parseStores(text)
		require.NoError(t, err, text)
		require.Equal(t, "main", stores[0].name)
		require.Equal(t, want, listStores(stores))
	}
	for text, want := range map[string]string{
		" ": "is blank",
		"eu=redis://a": "the store main is missing: it has the tokens and namespaces, so " +
			"name one of the stores main",
		"redis://:pw@a " +
			"redis://b": "two stores have the name main: name each, as in --store main=URL --store eu=URL",
		"main=redis://a main=redis://b":        "two stores have the name main",
		"sqlite:x eu=sqlite:./x":               "main and eu are the same store, sqlite:./x",
		"redis://:pw@a eu=redis://:pw@a":       "main and eu are the same store, redis://:xxxxx@a:6379/0",
		"sqlite:x Eu=redis://a":                `the name "Eu" is not 1 to 32 of a-z 0-9 and -, not beginning with -`,
		"sqlite:x =redis://a":                  `the name "" is not`,
		"sqlite:x -eu=redis://:pw@a":           `the name "-eu" is not`,
		"main=mysql:x":                         "must be sqlite:FILE",
		"redis://a eu=redis:///3":              "the URL cannot be read",
		strings.Repeat("a=sqlite:x ", 17):      "17 stores are more than 16",
		"sqlite:x eu=redis://:pw@a x=y=mysql:": "",
	} {
		_, err := parseStores(text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "pw")
	}
}

func TestValidate_ChecksTheSettingsOfEachStore(t *testing.T) {
	const two = "sqlite:x eu=redis://a"
	require.NoError(t, Options{Store: two, Shards: Shards{"main": 1, "eu": 16}, RedisPrefix: "x"}.Validate())
	for want, o := range map[string]Options{
		"shards: a sqlite store has one shard, not 2": {
			Store: two, Shards: Shards{"main": 2},
		},
		"shards: there is no store " +
			"asia": {Store: two, Shards: Shards{"asia": 2}},
		"shards: 257 is not between 1 and 256": {
			Store: two, Shards: Shards{"eu": 257},
		},
		"redis-prefix, redis-wait: cannot be combined with a sqlite " +
			"store": {Store: "sqlite:x eu=sqlite:y", RedisPrefix: "x"},
		"roles: a sqlite store needs one process with both api and worker, not": {
			Store: "redis://b eu=sqlite:y", Roles: Roles{RoleWorker},
		},
	} {
		require.ErrorContains(t, o.Validate(), want)
	}
	for _, text := range []string{"", "x", "eu=", "eu=1,eu=2", "1,2", "eu=1 asia=2"} {
		require.ErrorContains(t, new(Shards).UnmarshalText([]byte(text)), "main=1,eu=16", text)
	}
}

func TestOptions_PrintNoSecret(t *testing.T) {
	o := Options{Token: "s3cret", SecretKey: "s3cret"}
	text, err := json.Marshal(o)
	require.NoError(t, err)
	for _, shown := range []string{fmt.Sprintf("%+v", o), fmt.Sprintf("%#v", o), string(text)} {
		require.NotContains(t, shown, "s3cret")
		require.Equal(t, 2, strings.Count(shown, "[redacted]"), shown)
	}
}
