package client

import (
	"context"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert/yaml"
	"github.com/stretchr/testify/require"
)

// operation is how the client calls an operation of openapi.yaml.
type operation struct {
	call func(ctx context.Context, c *Client)
	in   any            // the type of the request's body; nil: none
	out  map[string]any // the type of the answer's body by status
	// params are query parameters that the client does not send, each with a reason.
	params map[string]string
}

// operations has every operation that has a method.
var operations = map[string]operation{
	"registerJob": {
		call: func(ctx context.Context, c *Client) { _, _ = c.RegisterAndWait(ctx, Job{}, time.Second) },
		in:   Job{}, out: map[string]any{"200": JobInfo{}, "201": JobInfo{}},
	},
	"listJobs": {
		call: func(ctx context.Context, c *Client) {
			all(c.Jobs(ctx, wholeQuery))
		},
		out: map[string]any{"200": JobPage{}},
	},
	"registerBatch": {
		call: func(ctx context.Context, c *Client) { all(c.RegisterAll(ctx, slices.Values([]Job{{}}))) },
		in:   Job{}, out: map[string]any{"200": batchResult{}},
	},
	"getJob": {
		call: func(ctx context.Context, c *Client) { _, _ = c.Wait(ctx, "i/d") },
		out:  map[string]any{"200": JobInfo{}},
	},
	"editJob": {
		call: func(ctx context.Context, c *Client) { _, _ = c.Edit(ctx, "i/d", Change{}) },
		in:   Change{}, out: map[string]any{"200": JobInfo{}},
	},
	"cancelJob": {
		call: func(ctx context.Context, c *Client) { _, _ = c.Cancel(ctx, "i/d") },
		out:  map[string]any{"200": JobInfo{}, "202": JobInfo{}},
	},
	"runJob": {
		call: func(ctx context.Context, c *Client) { _, _ = c.Run(ctx, "i/d") },
		out:  map[string]any{"200": JobInfo{}},
	},
	"reviveJob": {
		call: func(ctx context.Context, c *Client) { _, _ = c.Revive(ctx, "i/d", Revival{}) },
		in:   Revival{}, out: map[string]any{"200": JobInfo{}},
	},
	"listDead": {
		call: func(ctx context.Context, c *Client) {
			q := wholeQuery
			q.State = nil
			all(c.DeadJobs(ctx, q))
			_, _ = c.DeadPage(ctx, q)
		},
		out: map[string]any{"200": JobPage{}},
	},
	"groupDead": {
		call: func(ctx context.Context, c *Client) {
			q := wholeQuery
			q.State, q.Order, q.Limit, q.Cursor = nil, "", 0, ""
			_, _ = c.DeadGroups(ctx, q, "lane", "reason")
		},
		out: map[string]any{"200": JobGroups{}},
	},
	"startWork": {
		call: func(ctx context.Context, c *Client) {
			_, _ = c.StartWork(ctx, WorkOrder{})
			_, _ = c.CountWork(ctx, WorkOrder{Within: time.Second})
		},
		in: dryOrder{}, out: map[string]any{"200": WorkCount{}, "202": Work{}},
	},
	"listWork": {
		call: func(ctx context.Context, c *Client) {
			all(c.Works(ctx))
			_, _ = c.WorkPage(ctx, somePage)
		},
		out: map[string]any{"200": Page[Work]{}},
	},
	"sendEvent": {
		call: func(ctx context.Context, c *Client) {
			_, _ = c.SendEvent(ctx, NewEvent{})
			_, _ = c.SendEvent(ctx, NewEvent{Job: Job{ID: "e"}})
			_, _ = c.SendEventAndWait(ctx, NewEvent{}, time.Second)
			_, _ = c.PreviewEvent(ctx, NewEvent{})
		},
		in: NewEvent{}, out: map[string]any{"200": SentEvent{}, "201": SentEvent{}, "202": SentEvent{}},
	},
	"sendEvents": {
		call: func(ctx context.Context, c *Client) { _, _ = c.SendEvents(ctx, []NewEvent{{}}) },
		in:   eventBatch{}, out: map[string]any{"200": eventResults{}},
	},
	"listEvents": {
		call: func(ctx context.Context, c *Client) {
			now := time.Now()
			f := EventFilter{
				Topic: "t", Type: "a", Label: []string{"a:b"}, CreatedAfter: now, CreatedBefore: now, Order: "oldest",
			}
			all(c.Events(ctx, f))
			f.PageOptions = somePage
			_, _ = c.EventsPage(ctx, f)
		},
		out: map[string]any{"200": Page[SentEvent]{}},
	},
	"getEvent": {
		call: func(ctx context.Context, c *Client) {
			_, _ = c.GetEvent(ctx, "i/d")
			_, _ = c.WaitEvent(ctx, "i/d", time.Second)
		},
		out: map[string]any{"200": SentEvent{}},
	},
	"testLane": {
		call:   func(ctx context.Context, c *Client) { _, _ = c.TestLane(ctx, "t", "l:1", "a") },
		out:    map[string]any{"201": JobInfo{}},
		params: map[string]string{"wait": "the answer comes after the default, or when the job has ended"},
	},
	"getWork": {
		call: func(ctx context.Context, c *Client) { _, _ = c.GetWork(ctx, "i/d") },
		out:  map[string]any{"200": Work{}},
	},
	"stopWork": {
		call: func(ctx context.Context, c *Client) { _, _ = c.StopWork(ctx, "i/d") },
		out:  map[string]any{"200": Work{}},
	},
	"listSchedules": {
		call: func(ctx context.Context, c *Client) {
			all(c.Schedules(ctx))
			_, _ = c.SchedulesPage(ctx, somePage)
		},
		out: map[string]any{"200": Page[Schedule]{}},
	},
	"previewSchedule": {
		call: func(ctx context.Context, c *Client) {
			now := time.Now()
			_, _ = c.PreviewSchedule(ctx, Preview{
				Cron: "@daily", Timezone: "UTC", Every: 1, Offset: 1, StartsAt: now,
				EndsAt: now, From: now, Limit: 1,
			})
		},
		out: map[string]any{"200": SchedulePreview{}},
	},
	"getSchedule": {
		call: func(ctx context.Context, c *Client) { _, _ = c.GetSchedule(ctx, "n") },
		out:  map[string]any{"200": Schedule{}},
	},
	"putSchedule": {
		call: func(ctx context.Context, c *Client) { _, _ = c.PutSchedule(ctx, "n", ScheduleRequest{}) },
		in:   ScheduleRequest{}, out: map[string]any{"200": Schedule{}}, params: ofPuts,
	},
	"deleteSchedule": {call: func(ctx context.Context, c *Client) { _ = c.DeleteSchedule(ctx, "n") }},
	"runSchedule": {
		call: func(ctx context.Context, c *Client) { _, _ = c.RunSchedule(ctx, "n") },
		out:  map[string]any{"201": JobInfo{}},
	},
	"pauseSchedule": {
		call: func(ctx context.Context, c *Client) { _, _ = c.PauseSchedule(ctx, "n", "") },
		in:   pauseRequest{}, out: map[string]any{"200": Schedule{}},
	},
	"resumeSchedule": {
		call: func(ctx context.Context, c *Client) { _, _ = c.ResumeSchedule(ctx, "n") },
		out:  map[string]any{"200": Schedule{}},
	},
	"backfillSchedule": {
		call: func(ctx context.Context, c *Client) {
			_, _ = c.BackfillSchedule(ctx, "n", Backfill{})
			_, _ = c.CountBackfill(ctx, "n", Backfill{})
		},
		in: dryBackfill{}, out: map[string]any{"200": BackfillCount{}, "202": Schedule{}},
	},
	"listTopics": {
		call: func(ctx context.Context, c *Client) {
			all(c.Topics(ctx))
			all(c.TopicSettings(ctx))
			_, _ = c.TopicsPage(ctx, somePage)
		},
		out: map[string]any{"200": Page[Topic]{}},
	},
	"getTopic": {
		call: func(ctx context.Context, c *Client) {
			_, _ = c.GetTopic(ctx, "t")
			_, _ = c.GetTopicSettings(ctx, "t")
		},
		out: map[string]any{"200": Topic{}},
	},
	"putTopic": {
		call: func(ctx context.Context, c *Client) { _, _ = c.PutTopic(ctx, "t", Policy{}) },
		in:   Policy{}, out: map[string]any{"200": Topic{}}, params: ofPuts,
	},
	"patchTopic": {
		call: func(ctx context.Context, c *Client) { _, _ = c.PatchTopic(ctx, "t", Policy{}) },
		in:   Policy{}, out: map[string]any{"200": Topic{}},
	},
	"deleteTopic": {call: func(ctx context.Context, c *Client) { _ = c.DeleteTopic(ctx, "t", true) }},
	"pauseTopic": {
		call: func(ctx context.Context, c *Client) { _, _ = c.PauseTopic(ctx, "t", "") },
		in:   pauseRequest{}, out: map[string]any{"200": Topic{}},
	},
	"resumeTopic": {
		call: func(ctx context.Context, c *Client) { _, _ = c.ResumeTopic(ctx, "t") },
		out:  map[string]any{"200": Topic{}},
	},
	"leaseJobs": {
		call: func(ctx context.Context, c *Client) { _, _ = c.Lease(ctx, "t", LeaseOptions{}) },
		in:   LeaseOptions{}, out: map[string]any{"200": Page[LeasedJob]{}},
	},
	"settleLeases": {
		call: func(ctx context.Context, c *Client) { _, _ = c.Settle(ctx, Settlement{}) },
		in:   Settlement{}, out: map[string]any{"200": Settled{}},
	},
	"topicStats": {
		call: func(ctx context.Context, c *Client) {
			_, _ = c.TopicStats(ctx, "t")
			all(c.LaneStats(ctx, "t"))
			_, _ = c.TopicStatsPage(ctx, "t", somePage)
			_, _ = c.LaneCounts(ctx, "t", "l:1")
		},
		out: map[string]any{"200": topicOrLane{}},
	},
	"addTopicSecret": {
		call: func(ctx context.Context, c *Client) { _, _ = c.AddSecret(ctx, "t", "", NewSecret{}) },
		in:   NewSecret{}, out: map[string]any{"201": Secret{}},
	},
	"listTopicSecrets": {
		call: func(ctx context.Context, c *Client) {
			all(c.Secrets(ctx, "t", ""))
			_, _ = c.SecretsPage(ctx, "t", "", somePage)
		},
		out: map[string]any{"200": Page[Secret]{}},
	},
	"removeTopicSecret": {call: func(ctx context.Context, c *Client) { _ = c.RemoveSecret(ctx, "t", "", "i/d") }},
	"listTopicKeys": {
		call: func(ctx context.Context, c *Client) { all(c.Keys(ctx, "t", "")) },
		out:  map[string]any{"200": Page[Key]{}}, params: ofLists,
	},
	"troubledLanes": {
		call: func(ctx context.Context, c *Client) {
			_, _ = c.TroubledLanes(ctx, TroubledQuery{Topic: "t", Lane: "l", Code: "failing", Limit: 3})
		},
		out: map[string]any{"200": TroubledLanes{}},
	},
	"listLanes": {
		call: func(ctx context.Context, c *Client) {
			all(c.Lanes(ctx, "t"))
			all(c.SubscribedLanes(ctx, "t", "a"))
			_, _ = c.LanesPage(ctx, "t", somePage)
		},
		out: map[string]any{"200": Page[Lane]{}},
	},
	"getLane": {
		call: func(ctx context.Context, c *Client) { _, _ = c.GetLane(ctx, "t", "l:1") },
		out:  map[string]any{"200": Lane{}},
	},
	"putLane": {
		call: func(ctx context.Context, c *Client) { _, _ = c.PutLane(ctx, "t", "l:1", LaneSettings{}) },
		in:   LaneSettings{}, out: map[string]any{"200": Lane{}}, params: ofPuts,
	},
	"patchLane": {
		call: func(ctx context.Context, c *Client) { _, _ = c.PatchLane(ctx, "t", "l:1", LaneSettings{}) },
		in:   LaneSettings{}, out: map[string]any{"200": Lane{}},
	},
	"deleteLane": {call: func(ctx context.Context, c *Client) { _ = c.DeleteLane(ctx, "t", "l:1") }},
	"pauseLane": {
		call: func(ctx context.Context, c *Client) { _, _ = c.PauseLane(ctx, "t", "l:1", "") },
		in:   pauseRequest{}, out: map[string]any{"200": Lane{}},
	},
	"resumeLane": {
		call: func(ctx context.Context, c *Client) { _, _ = c.ResumeLane(ctx, "t", "l:1") },
		out:  map[string]any{"200": Lane{}},
	},
	"addLaneSecret": {
		call: func(ctx context.Context, c *Client) { _, _ = c.AddSecret(ctx, "t", "l:1", NewSecret{}) },
		in:   NewSecret{}, out: map[string]any{"201": Secret{}},
	},
	"listLaneSecrets": {
		call: func(ctx context.Context, c *Client) {
			all(c.Secrets(ctx, "t", "l:1"))
			_, _ = c.SecretsPage(ctx, "t", "l:1", somePage)
		},
		out: map[string]any{"200": Page[Secret]{}},
	},
	"removeLaneSecret": {call: func(ctx context.Context, c *Client) { _ = c.RemoveSecret(ctx, "t", "l:1", "i/d") }},
	"listLaneKeys": {
		call: func(ctx context.Context, c *Client) { all(c.Keys(ctx, "t", "l:1")) },
		out:  map[string]any{"200": Page[Key]{}}, params: ofLists,
	},
	"stats": {
		call: func(ctx context.Context, c *Client) {
			_, _ = c.Stats(ctx)
			all(c.StatsByTopic(ctx))
			_, _ = c.StatsPage(ctx, somePage)
		},
		out: map[string]any{"200": Stats{}},
	},
	"watchUpdates": {call: func(ctx context.Context, c *Client) {
		all(c.Stream(ctx, StreamOptions{Topic: "t", Lane: "l", Verdict: "dead"}))
	}},
	"whoami": {
		call: func(ctx context.Context, c *Client) { _, _ = c.Whoami(ctx) },
		out:  map[string]any{"200": Principal{}},
	},
	"listTokens": {
		call: func(ctx context.Context, c *Client) {
			all(c.Tokens(ctx))
			_, _ = c.TokensPage(ctx, somePage)
		},
		out: map[string]any{"200": Page[Token]{}},
	},
	"createToken": {
		call: func(ctx context.Context, c *Client) { _, _ = c.CreateToken(ctx, TokenRequest{}) },
		in:   TokenRequest{}, out: map[string]any{"201": Token{}},
	},
	"getToken": {
		call: func(ctx context.Context, c *Client) { _, _ = c.GetToken(ctx, "i/d") },
		out:  map[string]any{"200": Token{}},
	},
	"revokeToken": {call: func(ctx context.Context, c *Client) { _ = c.RevokeToken(ctx, "i/d") }},
	"listNamespaces": {
		call: func(ctx context.Context, c *Client) {
			all(c.Namespaces(ctx))
			_, _ = c.NamespacesPage(ctx, somePage)
		},
		out: map[string]any{"200": Page[Namespace]{}},
	},
	"getNamespace": {
		call: func(ctx context.Context, c *Client) { _, _ = c.GetNamespace(ctx, "n") },
		out:  map[string]any{"200": Namespace{}},
	},
	"putNamespace": {
		call: func(ctx context.Context, c *Client) { _, _ = c.PutNamespace(ctx, "n", NamespaceRequest{}) },
		in:   NamespaceRequest{}, out: map[string]any{"200": Namespace{}},
	},
	"deleteNamespace": {call: func(ctx context.Context, c *Client) { _ = c.DeleteNamespace(ctx, "n", true) }},
	"version": {
		call: func(ctx context.Context, c *Client) { _, _ = c.Version(ctx) },
		out:  map[string]any{"200": Version{}},
	},
	"history": {
		call: func(ctx context.Context, c *Client) {
			_, _ = c.History(ctx, HistoryQuery{Topics: []string{"t", "u"}, By: "hours"})
		},
		out: map[string]any{"200": History{}},
	},
	"topicHistory": {
		call: func(ctx context.Context, c *Client) { _, _ = c.TopicHistory(ctx, "t") },
		out:  map[string]any{"200": TopicHistory{}},
	},
	"alive": {call: func(ctx context.Context, c *Client) { _ = c.Alive(ctx) }},
	"ready": {
		call: func(ctx context.Context, c *Client) { _, _ = c.Ready(ctx) },
		out:  map[string]any{"200": Readiness{}},
	},
}

// topicOrLane has the members of both answers to topicStats.
type topicOrLane struct {
	TopicStats
	LaneCounts
}

// withoutMethod has the reasons for operations without a method.
var withoutMethod = map[string]string{
	"reviveDead":   "short form of startWork: StartWork with ActionRevive",
	"purgeDead":    "short form of startWork: StartWork with ActionPurge",
	"metrics":      "for Prometheus",
	"problems":     "for people: Problem.Type is a link to it",
	"root":         "for people; the client has the paths",
	"contractJSON": "for tools: Do",
	"contract":     "for tools: Do",
}

// ignored are members that types do not have, by type and name.
var ignored = map[string]string{
	"NamespaceRequest.namespace": "the API ignores it: the path has it",
	"NamespaceRequest.revision":  "the API ignores it: IfRevision",
	"NamespaceRequest.usage":     "the API ignores it",
	"NewEvent.lane":              "the lanes are those that subscribe",
	"NewEvent.url":               "that of each lane",
	"NewEvent.method":            "lanes have none",
	"NewEvent.headers":           "those of each lane",
}

// ofLists are the parameters of lists that the iterators send when there is a next page.
var ofLists = map[string]string{"limit": "the default of the server", "cursor": "sent for the second page"}

// somePage has every field.
var somePage = PageOptions{Cursor: "c", Limit: 10}

// ofPuts are the parameters of changes of settings.
var ofPuts = map[string]string{
	"dry_run":  "for tools that compare files with settings: Do",
	"defaults": "of a dry run",
}

// wholeQuery has every field.
var wholeQuery = Query{
	State: []State{Dead}, Topic: "t", Lane: "l", Kind: "all", Label: []string{"a:b"}, Reason: "expired",
	Status: 503, ErrorClass: "any", IDPrefix: "a", CreatedAfter: time.Unix(1, 0), CreatedBefore: time.Unix(2, 0),
	DueAfter: time.Unix(3, 0), DueBefore: time.Unix(4, 0), EndedAfter: time.Unix(5, 0), EndedBefore: time.Unix(6, 0),
	Order: "oldest", Limit: 10, Cursor: "c", Within: time.Second,
}

func all[T any](items iter.Seq2[T, error]) {
	for _, err := range items {
		_ = err
	}
}

// node is a node of openapi.yaml.
type node struct{ doc, here any }

var openAPI = sync.OnceValues(func() (map[string]any, error) {
	text, err := os.ReadFile("../api/openapi.yaml")
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	return doc, yaml.Unmarshal(text, &doc)
})

func readOpenAPI(t *testing.T) node {
	t.Helper()
	doc, err := openAPI()
	require.NoError(t, err)
	return node{doc, doc}
}

// at follows names and references.
func (n node) at(names ...string) node {
	for _, name := range names {
		m, _ := n.resolved().here.(map[string]any)
		n.here = m[name]
	}
	return n.resolved()
}

func (n node) resolved() node {
	for {
		m, _ := n.here.(map[string]any)
		ref, ok := m["$ref"].(string)
		if !ok {
			return n
		}
		n = node{n.doc, n.doc}.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
}

func (n node) keys() map[string]any { m, _ := n.here.(map[string]any); return m }

func (n node) list() []node {
	l, _ := n.here.([]any)
	nodes := make([]node, len(l))
	for i := range l {
		nodes[i] = node{n.doc, l[i]}.resolved()
	}
	return nodes
}

func (n node) text() string { s, _ := n.here.(string); return s }

// properties returns the properties of a schema, with those that it inherits and of its alternatives.
func (n node) properties() map[string]node {
	found := make(map[string]node)
	for _, kind := range []string{"allOf", "oneOf", "anyOf"} {
		for _, part := range n.at(kind).list() {
			maps.Copy(found, part.properties())
		}
	}
	for name := range n.at("properties").keys() {
		found[name] = n.at("properties", name)
	}
	if len(found) == 0 && n.at("items").here != nil {
		return n.at("items").properties()
	}
	return found
}

// fieldTypes returns the members of a type with the types of their values.
func fieldTypes(t reflect.Type) map[string]reflect.Type {
	found := make(map[string]reflect.Type)
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(found, fieldTypes(f.Type))
		case f.Tag.Get("wire") == "payload":
			found["body"], found["body_text"], found["body_base64"] = f.Type, f.Type, f.Type
		case name != "-" && name != "":
			found[name] = f.Type
		}
	}
	return found
}

// comparison compares types with schemas.
type comparison struct {
	t    *testing.T
	seen map[reflect.Type]map[string]bool // the properties of all schemas of a type
}

// compare requires that a type has the properties of a schema, and so on with theirs.
func (c comparison) compare(typ reflect.Type, schema node, where string) {
	c.t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	properties := schema.properties()
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
		if len(properties) > 0 && typ.String() != "json.RawMessage" {
			c.t.Errorf("%s has members, but is a %s", where, typ)
		}
		return
	}
	if c.seen[typ] == nil {
		c.seen[typ] = make(map[string]bool)
	}
	fields := fieldTypes(typ)
	for name, property := range properties {
		if readOnly, _ := property.at("readOnly").here.(bool); readOnly || ignored[typ.Name()+"."+name] != "" {
			continue
		}
		c.seen[typ][name] = true
		field, has := fields[name]
		if !has {
			c.t.Errorf("%s.%s of openapi.yaml is not in %s: add a field", where, name, typ)
			continue
		}
		c.compare(field, property, where+"."+name)
	}
}

// requireNoOthers requires that types have no members that no schema has.
func (c comparison) requireNoOthers() {
	for typ, seen := range c.seen {
		if strings.HasPrefix(typ.Name(), "Page[") {
			continue
		}
		for name := range fieldTypes(typ) {
			if !seen[name] && ignored[typ.Name()+"."+name] == "" {
				c.t.Errorf("%s has the member %s, which is not in openapi.yaml: remove the field", typ, name)
			}
		}
	}
}

// eachOperation calls f for each operation of openapi.yaml.
func eachOperation(t *testing.T, f func(id, method, path string, op, item node)) {
	t.Helper()
	paths := readOpenAPI(t).at("paths")
	for path := range paths.keys() {
		for _, method := range []string{"get", "put", "post", "patch", "delete"} {
			if op := paths.at(path, method); op.here != nil {
				f(op.at("operationId").text(), strings.ToUpper(method), path, op, paths.at(path))
			}
		}
	}
}

func TestOpenAPI_EveryOperationHasAMethodOrAReason(t *testing.T) {
	there := make(map[string]bool)
	eachOperation(t, func(id, _, _ string, _, _ node) {
		there[id] = true
		_, called := operations[id]
		require.NotEqual(t, called, withoutMethod[id] != "", "%s must have a method, or a reason in withoutMethod", id)
	})
	for id := range operations {
		require.True(t, there[id], "openapi.yaml has no operation %s", id)
	}
	for id := range withoutMethod {
		require.True(t, there[id], "openapi.yaml has no operation %s", id)
	}
}

func TestOpenAPI_TypesHaveTheMembersOfTheSchemas(t *testing.T) {
	c := comparison{t, make(map[reflect.Type]map[string]bool)}
	eachOperation(t, func(id, _, _ string, op, _ node) {
		o, called := operations[id]
		if !called {
			return
		}
		content := op.at("requestBody", "content")
		if o.in == nil {
			require.Nil(t, content.here, "%s has a body: set in", id)
		} else {
			kind := "application/json"
			if content.at("application/x-ndjson").here != nil {
				kind = "application/x-ndjson"
			}
			c.compare(reflect.TypeOf(o.in), content.at(kind, "schema"), id)
		}
		for status := range op.at("responses").keys() {
			content := op.at("responses", status, "content")
			schema := content.at("application/json", "schema")
			if ndjson := content.at("application/x-ndjson", "schema"); ndjson.here != nil {
				schema = ndjson
			}
			if status >= "300" || schema.here == nil || id == "alive" {
				continue
			}
			require.NotNil(t, o.out[status], "%s has an answer with the status %s: set out", id, status)
			c.compare(reflect.TypeOf(o.out[status]), schema, id+" "+status)
		}
	})
	schemas := readOpenAPI(t).at("components", "schemas")
	for name, typ := range map[string]any{
		"StreamAttempt": StreamAttempt{}, "StreamChange": StreamChange{},
		"StreamSkipped": streamSkipped{}, "Problem": Problem{}, "NewToken": Token{},
	} {
		c.compare(reflect.TypeOf(typ), schemas.at(name), name)
	}
	c.requireNoOthers()
}

// recording answers with a job that has ended, and records the requests.
type recording struct{ got []*http.Request }

func (r *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
	r.got = append(r.got, req)
	return &http.Response{
		StatusCode: http.StatusOK, Header: make(http.Header),
		Body: io.NopCloser(strings.NewReader(`{"state": "delivered"}`)), Request: req,
	}, nil
}

func TestOpenAPI_MethodsRequestTheOperation(t *testing.T) {
	variable := regexp.MustCompile(`\\\{\w+\\\}`)
	eachOperation(t, func(id, method, path string, op, item node) {
		o, called := operations[id]
		if !called {
			return
		}
		r := new(recording)
		c, err := New("http://ringback.test/prefix", Options{HTTP: &http.Client{Transport: r}, MaxRetries: -1})
		require.NoError(t, err)
		o.call(t.Context(), c)
		require.NotEmpty(t, r.got, id)
		template := regexp.MustCompile("^/prefix" + variable.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
		sent := make(url.Values)
		for _, req := range r.got {
			require.Equal(t, method, req.Method, id)
			require.Regexp(t, template, req.URL.EscapedPath(), id)
			for name := range req.URL.Query() {
				sent.Set(name, "")
			}
		}
		for _, p := range append(op.at("parameters").list(), item.at("parameters").list()...) {
			if name := p.at("name").text(); p.at("in").text() == "query" {
				require.True(t, sent.Has(name) || o.params[name] != "", "%s does not send the parameter %s", id, name)
				sent.Del(name)
			}
		}
		require.Empty(t, sent, "%s sends parameters that openapi.yaml does not have", id)
	})
}
