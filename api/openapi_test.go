package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert/yaml"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/store"
)

// document is the parsed openapi.yaml.
func document(t testing.TB) node {
	t.Helper()
	var doc map[string]any
	require.NoError(t, yaml.Unmarshal(openAPI, &doc))
	return node{doc, doc}
}

// node is a node of the document.
type node struct {
	doc  map[string]any
	here any
}

// at follows names and references.
func (n node) at(names ...string) node {
	for _, name := range names {
		n = n.resolved()
		m, _ := n.here.(map[string]any)
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
		n.here = n.doc
		for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			m, _ := n.here.(map[string]any)
			n.here = m[name]
		}
	}
}

func (n node) keys() []string {
	m, _ := n.here.(map[string]any)
	return sortedKeys(m)
}

func (n node) list() []any { l, _ := n.here.([]any); return l }

// properties returns the properties of a schema, with inherited ones.
func (n node) properties() map[string]node {
	all := make(map[string]node)
	for _, part := range n.at("allOf").list() {
		maps.Copy(all, (node{n.doc, part}).resolved().properties())
	}
	for _, name := range n.at("properties").keys() {
		all[name] = n.at("properties", name)
	}
	return all
}

// required returns the required properties.
func (n node) required() []string {
	var all []string
	for _, part := range n.at("allOf").list() {
		all = append(all, (node{n.doc, part}).resolved().required()...)
	}
	for _, name := range n.at("required").list() {
		s, _ := name.(string)
		all = append(all, s)
	}
	return all
}

// holds requires that a value has only declared properties, all required ones, and the right types.
func (n node) holds(t testing.TB, path string, value any) {
	t.Helper()
	require.NotNil(t, n.here, "%s has no schema", path)
	if alternatives := slices.Concat(n.at("oneOf").list(), n.at("anyOf").list()); alternatives != nil {
		fits := func(a any) bool {
			alternative := (node{n.doc, a}).resolved()
			object, _ := value.(map[string]any)
			missing := func(name string) bool { _, has := object[name]; return !has }
			return typed(alternative.at("type"), value) &&
				(object == nil || !slices.ContainsFunc(alternative.required(), missing))
		}
		i := slices.IndexFunc(alternatives, fits)
		require.GreaterOrEqual(t, i, 0, "%s is %T", path, value)
		if object := (node{n.doc, alternatives[i]}).resolved(); object.at("properties").here != nil {
			object.holds(t, path, value)
		}
		return
	}
	if fixed := n.at("const").here; fixed != nil {
		require.Equal(t, fixed, value, path)
	}
	require.True(t, typed(n.at("type"), value), "%s is %T, not %v", path, value, n.at("type").here)
	if allowed := n.at("enum").list(); allowed != nil {
		require.Contains(t, allowed, value, path)
	}
	switch v := value.(type) {
	case map[string]any:
		declared := n.properties()
		further := n.at("additionalProperties")
		for name, member := range v {
			p, ok := declared[name]
			switch {
			case ok && len(p.keys()) == 1: // a description alone: any JSON
			case ok:
				p.holds(t, path+"/"+name, member)
			default:
				_, open := further.here.(map[string]any)
				require.True(t, open, "%s/%s is not declared", path, name)
				further.holds(t, path+"/"+name, member)
			}
		}
		for _, name := range n.required() {
			require.Contains(t, v, name, path)
		}
	case []any:
		for i, element := range v {
			n.at("items").holds(t, path+"/"+strconv.Itoa(i), element)
		}
	}
}

// typed reports whether a value has a schema's type.
func typed(kind node, value any) bool {
	names := kind.list()
	if names == nil {
		names = []any{kind.here}
	}
	name := "null"
	switch v := value.(type) {
	case map[string]any:
		name = "object"
	case []any:
		name = "array"
	case string:
		name = "string"
	case bool:
		name = "boolean"
	case float64:
		name = "number"
		if v == float64(int64(v)) && slices.Contains(names, any("integer")) {
			name = "integer"
		}
	}
	return slices.Contains(names, any(name)) || kind.here == nil
}

func TestOpenAPI_HasEveryRouteAndNoOther(t *testing.T) {
	doc := document(t)
	var served, written []string
	for _, r := range new(api).routes() {
		for method := range r.methods {
			served = append(served, method+" "+r.path)
		}
	}
	for _, path := range doc.at("paths").keys() {
		for _, name := range doc.at("paths", path).keys() {
			if name != "parameters" {
				written = append(written, strings.ToUpper(name)+" "+path)
			}
		}
	}
	require.ElementsMatch(t, served, written)
}

func TestOpenAPI_HasEveryQueryParameterAndNoOther(t *testing.T) {
	doc := document(t)
	h := handlerOf(newFake())
	for _, r := range new(api).routes() {
		for method, e := range r.methods {
			var written []string
			operation := doc.at("paths", r.path, strings.ToLower(method))
			for _, p := range operation.at("parameters").list() {
				if p := (node{doc.doc, p}).resolved(); p.at("in").here == "query" {
					written = append(written, p.at("name").here.(string))
				}
			}
			require.ElementsMatch(t, written, e.parameters, "%s %s", method, r.path)

			unknown := call(t, h, method, strings.NewReplacer("{", "", "}", "").Replace(r.path)+"?wait_=30s", "")
			require.Equal(t, http.StatusUnprocessableEntity, unknown.Code, "%s %s", method, r.path)
			require.Contains(t, unknown.Body.String(), `"?wait_"`, "%s %s", method, r.path)
		}
	}
}

func TestOpenAPI_GoldenAnswersMatchTheirSchemas(t *testing.T) {
	doc := document(t)
	for i, g := range golden {
		t.Run(g.file, func(t *testing.T) {
			var value any
			require.NoError(t, json.Unmarshal(ask(t, i).Body.Bytes(), &value))
			doc.at("components", "schemas", g.schema).holds(t, g.schema, value)
		})
	}
}

func TestOpenAPI_GoldenAnswersHaveTheSchemaOfTheirPath(t *testing.T) {
	doc := document(t)
	for i, g := range golden {
		path, _, _ := strings.Cut(g.target, "?")
		for _, r := range new(api).routes() {
			if matches(r.path, path) {
				path = r.path
				break
			}
		}
		answer := doc.at("paths", path, strings.ToLower(g.method), "responses", strconv.Itoa(g.status))
		require.NotNil(t, answer.here, "%s %s answers %d", g.method, path, g.status)
		kind := ask(t, i).Header().Get("Content-Type")
		schema := answer.at("content", kind, "schema")
		schemas := []any{schema.here}
		for _, alternative := range schema.at("anyOf").list() {
			schemas = append(schemas, node{doc.doc, alternative}.resolved().here)
		}
		require.Contains(t, schemas, doc.at("components", "schemas", g.schema).here, g.file)
	}
}

// matches reports whether a path matches a pattern such as /v1/jobs/{id}.
func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(w, g string) bool { return w == g || strings.HasPrefix(w, "{") })
}

// Clients rely on every member being there, with null for none.
func TestOpenAPI_AnswersHaveEveryMember(t *testing.T) {
	schemas := document(t).at("components", "schemas")
	for _, name := range schemas.keys() {
		requireEveryMember(t, name, schemas.at(name))
	}
}

// requireEveryMember requires that an answer's schema, and those within, require all of their properties. Those of
// requests have additionalProperties: false.
func requireEveryMember(t *testing.T, path string, schema node) {
	t.Helper()
	if schema.at("additionalProperties").here == false {
		return
	}
	require.ElementsMatch(t, sortedKeys(schema.properties()), schema.required(), path)
	for name, member := range schema.properties() {
		requireEveryMember(t, path+"/"+name, member)
		requireEveryMember(t, path+"/"+name, member.at("items"))
	}
}

func TestOpenAPI_HasEveryFieldThatIsRead(t *testing.T) {
	schemas := document(t).at("components", "schemas")
	names := func(schema string) []string { return sortedKeys(schemas.at(schema).properties()) }
	require.Equal(t, sortedKeys(request.JobFields), names("NewJob"))
	var editable []string
	for name, field := range request.JobFields {
		if field.Editable() {
			editable = append(editable, name)
		}
	}
	slices.Sort(editable)
	require.Equal(t, editable, names("JobChange"))
	require.Equal(t, names("Topic"), names("Policy"), "PUT accepts what GET returned")
	require.Equal(t, names("Lane"), names("LaneSettings"), "PUT accepts what GET returned")
	for _, name := range names("Selection") {
		_, p := request.DecodeDead(null(name), store.WorkPurge)
		requireKnown(t, name, p)
	}
	for _, name := range names("Revival") {
		_, p := request.DecodeDead(null(name), store.WorkRevive)
		requireKnown(t, name, p)
	}
	for _, name := range names("WorkOrder") {
		_, p := request.DecodeWork(null(name), time.Time{})
		requireKnown(t, name, p)
	}
	for _, name := range names("WorkFilter") {
		_, p := request.DecodeWork([]byte(`{"action": "purge", "where": `+string(null(name))+`}`), time.Time{})
		requireKnown(t, name, p)
	}
}

// null returns an object with one member that is null.
func null(name string) []byte { return []byte(`{"` + name + `": null}`) }

// requireKnown checks that a request was not refused for an unknown field.
func requireKnown(t *testing.T, name string, p *response.Problem) {
	t.Helper()
	if p != nil {
		for _, f := range p.Fields {
			require.NotContains(t, f.Detail, "is not a field", name)
		}
	}
}

func TestOpenAPI_GoldenAnswersShowEveryField(t *testing.T) {
	doc := document(t)
	shown := make(map[string]bool)
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				shown[name] = true
				walk(member)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	for i := range golden {
		var value any
		require.NoError(t, json.Unmarshal(ask(t, i).Body.Bytes(), &value))
		walk(value)
	}
	for _, schema := range []string{
		"Job", "ChangedJob", "Attempt", "JobPage", "JobGroups", "BatchResults", "BatchResult", "Durability", "Topic",
		"Retention", "TopicPage", "TopicStats", "LaneCounts", "TroubledLanes", "TroubledLane", "Obstacle", "Remedy",
		"LaneFailure", "ReceiverHealth", "Stats", "HistoryBucket", "WorstLane",
		"Problem", "StoredCallback", "StoredBacklog", "Success", "Breaker",
		"ClientCert",
		"Lane", "LanePage",
		"Secret", "SecretPage", "KeyPage", "Work", "WorkCount",
	} {
		for name := range doc.at("components", "schemas", schema).properties() {
			require.True(t, shown[name], "no answer shows %s of %s", name, schema)
		}
	}
}

func TestOpenAPI_NamesTheLimitsOfAStream(t *testing.T) {
	text, _ := document(t).at("paths", "/v1/batch", "post", "description").here.(string)
	text = strings.Join(strings.Fields(text), " ")
	require.Equal(t, lineTimeout, takeTimeout)
	for _, want := range []string{
		fmt.Sprintf("At most %d,000 jobs", request.MaxBatchJobs/1000),
		fmt.Sprintf("at most %d MiB", request.MaxBatchBytes>>20),
		fmt.Sprintf("up to %d MiB of results", maxBuffered>>20),
		fmt.Sprintf("does not arrive within %d minute, or all of them within %d", lineTimeout/time.Minute,
			streamTimeout/time.Minute),
	} {
		require.Contains(t, text, want)
	}
}

func TestOpenAPI_IsServed(t *testing.T) {
	w := call(t, handlerOf(newFake()), http.MethodGet, "/openapi.yaml", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, openAPI, w.Body.Bytes())
}

func TestOpenAPI_IsServedAsJSON(t *testing.T) {
	w := call(t, handlerOf(newFake()), http.MethodGet, "/openapi.json", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	want, err := json.Marshal(document(t).here)
	require.NoError(t, err)
	require.JSONEq(t, string(want), w.Body.String())
}

func TestRoot_AnswersBrowsersWithAPage(t *testing.T) {
	h := handlerOf(newFake())
	w := call(t, h, http.MethodGet, "/", "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	require.Contains(t, w.Body.String(), "no console")
	require.Contains(t, w.Body.String(), `href="/openapi.yaml"`)
	require.NotContains(t, w.Body.String(), "v1.2.3", "the version needs the token")

	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/index.html", "").Code)
	links, _ := decodeResponse(t, call(t, h, http.MethodGet, "/", "", "Accept", "*/*"))["links"].(map[string]any)
	for name, path := range links {
		if text, ok := path.(string); ok {
			require.NotEqual(t, http.StatusNotFound, call(t, h, http.MethodGet, text, "").Code, name)
		}
	}

	worker := New(Options{Service: newFake(), HealthOnly: true})
	links, _ = decodeResponse(t, call(t, worker, http.MethodGet, "/", ""))["links"].(map[string]any)
	require.Contains(t, links, "jobs")
	require.Nil(t, links["jobs"])
}

func TestOpenAPI_ReferencesResolve(t *testing.T) {
	doc := document(t)
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				require.NotNil(t, (node{doc.doc, v}).resolved().here, ref)
			}
			for _, member := range v {
				walk(member)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(doc.here)
}
