package api

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/testkit"
)

func TestAudit_LogsEveryChangeButRegistrations(t *testing.T) {
	for target, want := range map[string]string{
		`POST /v1/dead/purge {"topic": "a"}`: "actor=\"\" token=\"\" action=dead.purge " +
			"remote=192.0.2.1:1234 work=w1 change=purge topic=a ids=0",
		`POST /v1/dead/revive {"ids": ["x", "y"]}`: "actor=\"\" token=\"\" action=dead.revive " +
			"remote=192.0.2.1:1234 work=w1 change=revive topic=\"\" ids=2",
		`POST /v1/work/w1/stop`: "action=work.stop remote=192.0.2.1:1234 work=w1 " +
			"change=revive topic=order.close matched=5 done=2 failed=1",
		`POST /v1/dead/purge {"all": true, "dry_run": true}`: "",
		`POST /v1/dead/purge {"all": 5}`:                     "",
		`POST /v1/topics/seen/pause`:                         `action=topic.pause remote=192.0.2.1:1234 topic=seen`,
		`PUT /v1/topics/seen {}`:                             `action=topic.change`,
		`PUT /v1/topics/seen {"workers": 0}`:                 "",
		`DELETE /v1/topics/order.close/lanes/a`: `action=lane.delete remote=192.0.2.1:1234 ` +
			`topic=order.close lane=a`,
		`POST /v1/topics/seen/secrets`:                         `action=secret.add`,
		`GET /v1/topics/seen`:                                  "",
		`POST /v1/jobs {"id": "n", "url": "http://a.example"}`: "",
		`POST /v1/jobs/dead/revive`: `action=job.revive remote=192.0.2.1:1234 ` +
			`topic=order.close job=close-4711`,
		`POST /v1/jobs/dead/run`: "",
		`DELETE /v1/jobs/running`: `action=job.cancel remote=192.0.2.1:1234 topic=default ` +
			`job=running`,
		`DELETE /v1/jobs/nothing`: "",
		`POST /v1/tokens {"name": "a", "role": "read"}`: "action=token.create remote=192.0.2.1:1234 id=5tR1nGs0 " +
			"name=a role=read for=default",
		`DELETE /v1/tokens/5tR1nGs0`: "action=token.revoke remote=192.0.2.1:1234 id=5tR1nGs0",
		`PUT /v1/namespaces/new {}`:  "action=namespace.put remote=192.0.2.1:1234 name=new",
		`DELETE /v1/namespaces/shop`: "action=namespace.delete remote=192.0.2.1:1234 name=shop",
	} {
		var log testkit.Log
		h := New(Options{Service: fullService(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		parts := strings.SplitN(target, " ", 3)
		w := call(t, h, parts[0], parts[1], strings.Join(parts[2:], ""))
		if want == "" {
			require.NotContains(t, log.String(), "msg=audit", "%s: %s", target, w.Body)
			continue
		}
		require.Less(t, w.Code, 300, "%s: %s", target, w.Body)
		require.Equal(t, 1, strings.Count(log.String(), "msg=audit"), target)
		require.Contains(t, log.String(), want)
	}
}

func TestAudit_NamesTheTokenAndWhatItMayNot(t *testing.T) {
	valid, _ := access.NewText()
	f := withTokens(fullService(), map[string]*access.Principal{valid: {
		TokenID: "5tR1nGs0", Actor: "ops", Role: access.Operate, Namespace: "shop", Topics: access.Topics{"order.*"},
	}})
	for target, want := range map[string]string{
		"POST /v1/topics/order.close/pause": `msg=audit actor=ops token=5tR1nGs0 action=topic.pause ` +
			`remote=192.0.2.1:1234 namespace=shop topic=order.close`,
		"POST /v1/topics/invoice/pause": `msg="request forbidden" actor=ops token=5tR1nGs0 remote=192.0.2.1:1234 ` +
			`method=POST route=/v1/topics/{topic}/pause topic=invoice reason="the topic is not allowed: the token is ` +
			`restricted to the topics order.*"`,
		"DELETE /v1/topics/order.close": `msg="request forbidden" actor=ops token=5tR1nGs0 remote=192.0.2.1:1234 ` +
			`method=DELETE route=/v1/topics/{topic} topic=order.close reason="topic.delete requires`,
	} {
		var log testkit.Log
		h := New(Options{Service: f, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		method, path, _ := strings.Cut(target, " ")
		call(t, h, method, path, "", "Authorization", "Bearer "+valid)
		require.Contains(t, log.String(), want)
		call(t, h, method, path, "", "Authorization", "Bearer "+valid)
		require.LessOrEqual(t, strings.Count(log.String(), "request forbidden"), 1, "one a second")
	}
}
