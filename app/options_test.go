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
		Addr: "8080", Store: "mysql://x", Shards: -1, MaxBody: -1, Grace: time.Millisecond, Token: "a b", NoAuth: true,
		Roles: []Role{"carrier"},
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
	for _, text := range []string{"", "ringback.db", "sqlite:", "sqlite::memory:", "redis:", "redis://", "redis:///3", "redis://:pw@", "mysql://x", "redis://u:pw@%zz/"} {
		_, err := parseStore(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "pw")
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
