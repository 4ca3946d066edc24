package app

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

// Random requests from openapi.yaml, valid and not. Each must have an answer of the contract, and none a 5xx.
//
//	CONTRACT_REQUESTS=100000 CONTRACT_SEED=7 go test ./app -run Contract
func TestContract_HoldsForRandomRequests(t *testing.T) {
	stores := map[string]func(t *testing.T) string{
		"SQLite": func(*testing.T) string { return "" },
		"Redis":  func(t *testing.T) string { t.Helper(); return redistest.Start(t).URL() },
	}
	if testkit.All {
		stores["miniredis"] = func(t *testing.T) string { t.Helper(); return "redis://" + miniredis.RunT(t).Addr() }
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) { testContract(t, store(t)) })
	}
}

func testContract(t *testing.T, store string) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		w.WriteHeader(max(code, 200))
	}))
	defer receiver.Close()
	o := testOptions(t)
	const root = "root-0123456789abc"
	o.Logger, o.Token = slog.New(slog.DiscardHandler), root
	if store != "" {
		o.Store = store
	}
	r := run(t, o)
	seed := number(t, "CONTRACT_SEED", rand.Uint64())
	t.Logf("CONTRACT_SEED=%d", seed)
	c := newContract(t, r, rand.New(rand.NewPCG(seed, 0)), receiver.URL)
	c.tokens = []string{
		root, createToken(t, r, root, `{"name": "reader", "role": "read"}`),
		createToken(t, r, root, `{"name": "shop", "role": "publish", "topics": ["orders"]}`),
	}
	seen := make(map[string]bool)
	usual := []string{
		"POST /v1/jobs 401", "POST /v1/jobs 403", "POST /v1/jobs 404", "PATCH /v1/jobs/{id} 403",
		"POST /v1/jobs 201", "POST /v1/jobs 422", "POST /v1/jobs 400", "GET /v1/jobs 200",
		"GET /v1/jobs/{id} 200", "GET /v1/jobs/{id} 404", "POST /v1/work 202", "GET /v1/work 200",
		"GET /v1/work/{id} 200", "POST /v1/work/{id}/stop 200", "PATCH /v1/jobs/{id} 422", "DELETE /v1/jobs/{id} 200",
		"POST /v1/batch 200", "PUT /v1/topics/{topic} 200", "GET /v1/topics 200",
	}
	// Some of the usual answers are rare: random requests of their operations go on until all were given.
	missing := slices.Clone(usual)
	requests := number(t, "CONTRACT_REQUESTS", testkit.Of[uint64](400, 1200))
	for n := uint64(0); n < requests || n < 24_000 && len(missing) > 0; n++ {
		op := c.operations[c.random.IntN(len(c.operations))]
		switch {
		case n >= requests && c.one(2):
			name := c.pick(missing...)
			gave := func(o operation) bool { return strings.HasPrefix(name, o.name+" ") }
			op = c.operations[slices.IndexFunc(c.operations, gave)]
		case c.one(3): // many need a job
			op = c.jobs[c.random.IntN(len(c.jobs))]
		}
		answer := op.name + " " + strconv.Itoa(c.try(t, op))
		seen[answer] = true
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == answer })
	}
	require.NoError(t, r.stop())
	t.Log(strings.Join(slices.Sorted(maps.Keys(seen)), ", "))
	for _, name := range usual {
		require.True(t, seen[name], "no request was answered like this: %s", name)
	}
}

// createToken creates a token and returns its text.
func createToken(t *testing.T, r runningApp, root, body string) string {
	t.Helper()
	status, answer := r.ask(t, http.MethodPost, "/v1/tokens", body, "Authorization", "Bearer "+root)
	require.Equal(t, http.StatusCreated, status, answer)
	var created struct{ Token string }
	require.NoError(t, json.Unmarshal([]byte(answer), &created))
	return created.Token
}

// number returns the number in an environment variable.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// object is a JSON object.
type object = map[string]any

// A contract makes requests from the document that the server serves, and checks the answers.
type contract struct {
	doc        object
	operations []operation
	jobs       []operation                   // those whose path begins with /v1/jobs
	answers    map[string]*jsonschema.Schema // by operation, status and media type
	random     *rand.Rand
	receiver   string
	tokens     []string // the first may do everything
	client     *http.Client
	base       string
	works      []string // ids
}

// An operation is a method of a path.
type operation struct {
	name, method, path string
	parameters         []any
	body               object // its content, by media type
	responses          object
}

func newContract(t *testing.T, r runningApp, random *rand.Rand, receiver string) *contract {
	t.Helper()
	c := &contract{
		random: random, receiver: receiver, base: "http://" + r.Addr(), answers: make(map[string]*jsonschema.Schema),
		client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	t.Cleanup(c.client.CloseIdleConnections)
	status, text := r.ask(t, http.MethodGet, "/openapi.json", "")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, json.Unmarshal([]byte(text), &c.doc))
	strict, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)
	closeSchemas(strict.(object))
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("openapi.json", strict))
	paths := c.doc["paths"].(object)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := paths[path].(object)
		shared, _ := item["parameters"].([]any)
		for _, method := range slices.Sorted(maps.Keys(item)) {
			if method == "parameters" {
				continue
			}
			spec := item[method].(object)
			own, _ := spec["parameters"].([]any)
			op := operation{
				name: strings.ToUpper(method) + " " + path, method: strings.ToUpper(method), path: path,
				parameters: slices.Concat(shared, own), responses: spec["responses"].(object),
			}
			if body, ok := spec["requestBody"].(object); ok {
				op.body = c.resolve(body)["content"].(object)
			}
			c.operations = append(c.operations, op)
			if strings.HasPrefix(path, "/v1/jobs") {
				c.jobs = append(c.jobs, op)
			}
			for status, answer := range op.responses {
				at := "#/paths/" + escape(path) + "/" + method + "/responses/" + status
				if ref, ok := answer.(object)["$ref"].(string); ok {
					at = ref
				}
				content, _ := c.resolve(answer.(object))["content"].(object)
				for kind := range content {
					schema, err := compiler.Compile("openapi.json" + at + "/content/" + escape(kind) + "/schema")
					require.NoError(t, err)
					c.answers[op.name+" "+status+" "+kind] = schema
				}
			}
		}
	}
	return c
}

// escape returns a step of a JSON pointer in a URL.
func escape(step string) string {
	return url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
}

// closeSchemas forbids members that schemas do not declare: clients accept them, but the contract must name them.
// Schemas that others include with allOf have an open copy.
func closeSchemas(doc object) {
	closeSchema(doc)
	schemas := doc["components"].(object)["schemas"].(object)
	for _, name := range slices.Collect(maps.Keys(schemas)) {
		open, _ := clone(schemas[name]).(object)
		delete(open, "unevaluatedProperties")
		schemas[name+"Open"] = open
	}
}

func clone(v any) any {
	switch v := v.(type) {
	case object:
		copied := make(object, len(v))
		for name, member := range v {
			copied[name] = clone(member)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i := range v {
			copied[i] = clone(v[i])
		}
		return copied
	}
	return v
}

func closeSchema(v any) {
	switch v := v.(type) {
	case object:
		for _, member := range v {
			closeSchema(member)
		}
		included, _ := v["allOf"].([]any)
		for _, part := range included {
			p, _ := part.(object)
			if ref, ok := p["$ref"].(string); ok && !strings.HasSuffix(ref, "Open") {
				p["$ref"] = ref + "Open"
			}
		}
		_, properties := v["properties"].(object)
		if _, open := v["additionalProperties"]; properties && !open {
			v["unevaluatedProperties"] = false
		}
	case []any:
		for _, element := range v {
			closeSchema(element)
		}
	}
}

// resolve follows references.
func (c *contract) resolve(schema object) object {
	for {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		var at any = c.doc
		for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(object)[step]
		}
		schema = at.(object)
	}
}

// try makes a request of an operation and checks the answer.
func (c *contract) try(t *testing.T, op operation) (status int) {
	t.Helper()
	method, target, header := op.method, op.path, make(http.Header)
	query := make(url.Values)
	for _, p := range op.parameters {
		spec := c.resolve(p.(object))
		name, _ := spec["name"].(string)
		schema, _ := spec["schema"].(object)
		required, _ := spec["required"].(bool)
		switch in := spec["in"]; {
		case in == "path" && strings.HasPrefix(op.path, "/v1/work/") && len(c.works) > 0 && !c.one(4):
			target = strings.Replace(target, "{id}", c.pick(c.works...), 1)
		case in == "path":
			target = strings.Replace(target, "{"+name+"}", url.PathEscape(c.pathValue(name, schema)), 1)
		case !required && !c.one(4):
		case in == "query":
			query.Add(name, c.text(name, schema))
		default:
			header.Set(name, strings.Map(visible, c.text(name, schema)))
		}
	}
	if c.one(15) {
		query.Add(c.pick("limit", "cursor", "a b", "topic", "state"), c.junkText())
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var body []byte
	if op.body != nil && !c.one(20) {
		kinds := slices.Sorted(maps.Keys(op.body))
		kind := kinds[c.random.IntN(len(kinds))]
		schema := op.body[kind].(object)["schema"].(object)
		header.Set("Content-Type", kind)
		lines := 1
		if kind == "application/x-ndjson" {
			lines = c.random.IntN(5)
		}
		for range lines {
			body = append(append(body, c.bodyText(schema)...), '\n')
		}
	} else if c.one(10) {
		body = []byte(c.junkText())
	}
	if c.one(25) {
		header.Set(c.pick("If-Match", "If-None-Match", "Content-Type", "Content-Encoding", "Accept",
			"Idempotency-Key", "Accept-Encoding"),
			c.pick(`"1"`, "*", `W/"1"`, "x", "application/json", "text/plain", "gzip", "text/html", ""))
	}
	if !c.one(50) {
		token := c.tokens[0]
		if c.one(8) {
			token = c.pick(c.tokens...)
		}
		header.Set("Authorization", "Bearer "+token)
	}
	if c.one(30) {
		header.Set("Ringback-Namespace", c.pick("default", "none"))
	}
	if c.one(25) {
		method = c.pick("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FOO")
	}
	req, err := http.NewRequestWithContext(t.Context(), method, c.base+target, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header = header
	resp, err := c.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var answer []byte
	if resp.Header.Get("Content-Type") != "text/event-stream" { // which is endless
		answer, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
	}
	about := method + " " + target + "\n" + printHeader(header) + "\n" + string(body) + "\n\n" + resp.Status + "\n" +
		printHeader(resp.Header) + "\n" + string(answer)
	require.Less(t, resp.StatusCode, 500, about)
	c.check(t, op, method, resp, answer, about)
	if resp.StatusCode == http.StatusAccepted {
		if id, ok := strings.CutPrefix(resp.Header.Get("Location"), "/v1/work/"); ok {
			c.works = append(c.works, id)
		}
	}
	return resp.StatusCode
}

func printHeader(header http.Header) string {
	var b strings.Builder
	_ = header.Write(&b)
	return b.String()
}

// general are the statuses that every path may answer, as the contract's introduction says.
var general = []int{400, 415, 422}

// check requires that an answer is one of the operation's.
func (c *contract) check(t *testing.T, op operation, method string, resp *http.Response, answer []byte, about string) {
	t.Helper()
	status := strconv.Itoa(resp.StatusCode)
	if method != op.method { // another operation's, or none's
		if method != http.MethodHead && resp.StatusCode >= 400 {
			require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"), about)
		}
		return
	}
	declared, listed := op.responses[status].(object)
	if !listed {
		require.Contains(t, general, resp.StatusCode, about)
		require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"), about)
		declared = object{"$ref": "#/components/responses/Problem"}
	}
	content, _ := c.resolve(declared)["content"].(object)
	if content == nil {
		require.Empty(t, answer, about)
		return
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	require.NoError(t, err, about)
	require.Contains(t, content, kind, about)
	schema := c.answers[op.name+" "+status+" "+kind]
	if schema == nil {
		schema = c.answers["POST /v1/jobs 400 "+kind]
	}
	var values []any
	switch kind {
	case "application/json", "application/problem+json":
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
		require.NoError(t, err, about)
		values = []any{value}
	case "application/x-ndjson":
		for line := range bytes.Lines(answer) {
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
			require.NoError(t, err, about)
			values = append(values, value)
		}
	}
	for _, value := range values {
		require.NoError(t, schema.Validate(value), about)
	}
	if tags := resp.Header["Etag"]; kind == "application/json" && len(tags) > 0 {
		require.Regexp(t, `^"\d+"$`, tags[0], about)
	}
}

// one reports true once in n times.
func (c *contract) one(n int) bool { return c.random.IntN(n) == 0 }

func (c *contract) pick(of ...string) string { return of[c.random.IntN(len(of))] }

func visible(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// pathValue returns a value for a step of a path.
func (c *contract) pathValue(name string, schema object) string {
	value := c.text(name, schema)
	if value == "" || strings.Trim(value, ".") == "" { // net/http cleans such paths
		return "x"
	}
	return value
}

// text returns a parameter.
func (c *contract) text(name string, schema object) string {
	if c.one(12) {
		return c.junkText()
	}
	switch v := c.value(name, schema).(type) {
	case string:
		return v
	case []any:
		for _, first := range v {
			text, _ := first.(string)
			return text
		}
		return ""
	default:
		text, _ := json.Marshal(v)
		return string(text)
	}
}

func (c *contract) junkText() string {
	return c.pick("", "0", "-1", "1e3", "null", "{}", "[]", "{", `{"a":`, "\xff", "é", "%", "a/b",
		strings.Repeat("a", 200), "99999999999999999999",
		"2030-01-31T08:00:00Z", `{"a": 1, "a": 2}`, "\x00", `""`, "..a")
}

// bodyText returns a body: usually of the schema, then with changes.
func (c *contract) bodyText(schema object) []byte {
	value := c.value("", schema)
	if c.one(3) {
		value = c.change(value)
	}
	text, _ := json.Marshal(value)
	switch c.random.IntN(40) {
	case 0:
		return []byte(c.junkText())
	case 1:
		return text[:c.random.IntN(len(text)+1)]
	case 2:
		return bytes.Repeat([]byte("["), 20_000)
	case 3:
		at := c.random.IntN(len(text) + 1)
		return slices.Concat(text[:at], []byte(c.junkText()), text[at:])
	}
	return text
}

// change changes a value somewhere.
func (c *contract) change(v any) any {
	switch v := v.(type) {
	case object:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || c.one(6) {
			v[c.pick("more", "id", "", "Ü")] = c.junk()
			return v
		}
		name := names[c.random.IntN(len(names))]
		if c.one(6) {
			delete(v, name)
		} else {
			v[name] = c.change(v[name])
		}
		return v
	case []any:
		if len(v) > 0 && !c.one(4) {
			i := c.random.IntN(len(v))
			v[i] = c.change(v[i])
			return v
		}
		return append(v, c.junk())
	}
	return c.junk()
}

func (c *contract) junk() any {
	switch c.random.IntN(9) {
	case 0:
		return nil
	case 1:
		return true
	case 2:
		return []int{-1, 0, 1 << 40, 500}[c.random.IntN(4)]
	case 3:
		return 1.5
	case 4:
		return []any{nil, "a"}
	case 5:
		return object{"a": object{"b": 1}}
	case 6:
		return json.Number("1e300")
	default:
		return strings.ToValidUTF8(c.junkText(), "")
	}
}

// value returns a value of a schema. name is that of the member or parameter.
func (c *contract) value(name string, schema object) any {
	ref, _ := schema["$ref"].(string)
	schema = c.resolve(schema)
	switch ref[strings.LastIndex(ref, "/")+1:] {
	case "TopicName":
		return c.pick("orders", "bills", "a.b", "default", "_callbacks")
	case "LaneName":
		return c.pick("a", "b", "127.0.0.1:80", "[::1]:80")
	case "JobID":
		return c.id()
	case "URL":
		return c.receiver + c.pick("/200", "/500", "/404", "/410", "/?a=b")
	case "WorkOrder":
		if c.one(2) {
			return c.order()
		}
	case "Rate":
		return c.pick("100/s", "5/90s", "1000/1h30m", "")
	}
	if of, ok := schema["oneOf"].([]any); ok {
		return c.value(name, of[c.random.IntN(len(of))].(object))
	}
	if of, ok := schema["enum"].([]any); ok {
		return of[c.random.IntN(len(of))]
	}
	if fixed, ok := schema["const"]; ok {
		return fixed
	}
	kind, _ := schema["type"].(string)
	if kinds, ok := schema["type"].([]any); ok {
		kind, _ = kinds[c.random.IntN(len(kinds))].(string)
	}
	switch kind {
	case "null":
		return nil
	case "boolean":
		return c.one(2)
	case "integer", "number":
		return c.number(schema)
	case "string":
		return c.string(name, schema)
	case "array":
		items, _ := schema["items"].(object)
		all := []any{}
		for range c.random.IntN(3) {
			all = append(all, c.value(name, items))
		}
		return all
	case "object":
		return c.object(schema)
	}
	return []any{nil, 1, "text", object{"order": 4711}, []any{1}}[c.random.IntN(5)] // any JSON
}

// order returns an order of bulk work. Random ones are rarely accepted.
func (c *contract) order() object {
	action := c.pick("revive", "purge", "cancel", "run", "edit")
	order := object{
		"action": action,
		"where":  []object{{"topic": "orders"}, {"all": true}, {"ids": []any{c.id(), c.id()}}}[c.random.IntN(3)],
	}
	if action == "edit" {
		order["change"] = object{"labels": object{"a": "b"}, "delay": "1h"}
	}
	if (action == "revive" || action == "run") && c.one(2) {
		order["rate"] = "100/s"
	}
	return order
}

func (c *contract) id() string {
	if c.one(8) {
		return "new-" + strconv.FormatUint(c.random.Uint64(), 36)
	}
	return "job-" + strconv.Itoa(c.random.IntN(20))
}

func (c *contract) number(schema object) any {
	least, most := 0, 100
	if n, ok := schema["minimum"].(float64); ok {
		least = int(n)
	}
	if n, ok := schema["maximum"].(float64); ok {
		most = min(int(n), least+1000)
	}
	return least + c.random.IntN(max(most-least, 0)+1)
}

func (c *contract) string(name string, schema object) string {
	if format := schema["format"]; format == "date-time" {
		return time.Now().Add(time.Duration(c.random.IntN(7200)-1800) * time.Second).UTC().Format(time.RFC3339)
	}
	if name == "id" || name == "ids" || name == "Idempotency-Key" {
		return c.id()
	}
	if name == "label" {
		return c.pick("a:1", "a:", "a")
	}
	switch name {
	case "delay":
		return c.pick("0s", "50ms", "90s", "1h")
	case "timeout":
		return c.pick("5s", "90s", "1h")
	case "wait":
		return c.pick("0s", "5ms", "61s")
	case "expires_in":
		return c.pick("2h", "1d", "1s")
	}
	if examples, ok := schema["examples"].([]any); ok {
		text, _ := examples[c.random.IntN(len(examples))].(string)
		return text
	}
	return c.pick("1", "a", "410", "4xx", "2xx", "text/plain", "aGVsbG8=", "hello")
}

func (c *contract) object(schema object) any {
	made := object{}
	properties, _ := schema["properties"].(object)
	required, _ := schema["required"].([]any)
	rare := 2
	if len(properties) > 8 {
		rare = 4 // so that some are valid together
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || c.random.IntN(rare) == 0 {
			made[name] = c.value(name, properties[name].(object))
		}
	}
	for _, exclusive := range [][]string{
		{"body", "body_text", "body_base64", "content_type"}, {"delay", "run_at"}, {"expires_in", "expires_at"},
	} {
		kept := c.random.IntN(len(exclusive))
		for i, name := range exclusive {
			if i != kept && !c.one(10) {
				delete(made, name)
			}
		}
	}
	if _, ok := properties["url"]; ok && !c.one(5) {
		made["url"] = c.value("", object{"$ref": "#/components/schemas/URL"})
	}
	if further, ok := schema["additionalProperties"].(object); ok {
		for range c.random.IntN(3) {
			made[c.pick("a", "X-A", "Authorization", "content-type")] = c.value("", further)
		}
	}
	return made
}
