package api

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// examplesOf returns the examples of a media type: one, or several by name.
func examplesOf(n node) map[string]any {
	all := make(map[string]any)
	if one := n.at("example").here; one != nil {
		all[""] = one
	}
	for _, name := range n.at("examples").keys() {
		all[name] = n.at("examples", name, "value").here
	}
	return all
}

func TestOpenAPI_RequestExamplesAreAccepted(t *testing.T) {
	doc := document(t)
	taken := 0
	for _, path := range doc.at("paths").keys() {
		for _, method := range doc.at("paths", path).keys() {
			content := doc.at("paths", path, method, "requestBody", "content", "application/json")
			for name, example := range examplesOf(content) {
				body, err := json.Marshal(example)
				require.NoError(t, err)
				target := strings.NewReplacer("{namespace}", "shop", "{topic}", "order.close", "{lane}", "a", "{id}",
					"plain", "{schedule}", "daily").Replace(path)
				w := call(t, handlerOf(fullService()), strings.ToUpper(method), target, string(body))
				require.Less(t, w.Code, 300, "%s %s %s: %s", method, path, name, w.Body)
				schema := content.at("schema")
				var value any
				require.NoError(t, json.Unmarshal(body, &value))
				schema.holds(t, path, value)
				taken++
			}
		}
	}
	require.Greater(t, taken, 10)
}

func TestOpenAPI_AnswerExamplesMatchTheirSchema(t *testing.T) {
	doc := document(t)
	var walk func(n node)
	seen := 0
	walk = func(n node) {
		if schema := n.at("schema"); schema.here != nil && n.at("example").here != nil {
			text, err := json.Marshal(n.at("example").here)
			require.NoError(t, err)
			var value any
			require.NoError(t, json.Unmarshal(text, &value))
			schema.holds(t, "example", value)
			seen++
		}
		for _, name := range n.keys() {
			if m, ok := n.here.(map[string]any); ok {
				walk(node{n.doc, m[name]})
			}
		}
	}
	walk(doc.at("components", "responses"))
	for _, path := range []string{"/v1/dead/revive", "/v1/dead/purge", "/v1/work"} {
		walk(doc.at("paths", path, "post", "responses", "200", "content", "application/json"))
	}
	require.GreaterOrEqual(t, seen, 5)
}

func TestOpenAPI_ListsEveryReasonAndErrorClass(t *testing.T) {
	schemas := document(t).at("components", "schemas")
	shown, _ := schemas.at("JobItem", "properties", "reason", "description").here.(string)
	require.Len(t, schemas.at("Reason", "enum").list(), len(policy.Reasons()))
	for _, reason := range policy.Reasons() {
		require.Contains(t, schemas.at("Reason", "enum").list(), string(reason))
		require.Contains(t, shown, string(reason))
	}
	require.Contains(t, shown, string(job.ReasonCancelled))

	source, err := os.ReadFile("../policy/result.go")
	require.NoError(t, err)
	classes := regexp.MustCompile(`(?m)^\tClass\w+\s+ErrorClass = "(\w+)"`).FindAllSubmatch(source, -1)
	require.Len(t, classes, len(policy.ErrorClasses))
	require.Len(t, schemas.at("ErrorClass", "enum").list(), len(classes)+2, "with any and unknown")
	listed, _ := schemas.at("AttemptSummary", "properties", "error_class", "description").here.(string)
	words := strings.FieldsFunc(listed, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
	for _, class := range classes {
		require.Contains(t, words, string(class[1]))
		require.Contains(t, policy.ErrorClasses, policy.ErrorClass(class[1]))
		require.Contains(t, schemas.at("ErrorClass", "enum").list(), string(class[1]))
	}
}

func TestOpenAPI_NamesTheLimitsOfDeadLettersAndSecrets(t *testing.T) {
	doc := document(t)
	schemas := doc.at("components", "schemas")
	for _, schema := range []string{"Selection", "Revival", "WorkFilter"} {
		require.EqualValues(t, request.MaxSelectedIDs, schemas.at(schema, "properties", "ids", "maxItems").here)
	}
	require.EqualValues(t, policy.MaxSecrets, schemas.at("SecretPage", "properties", "items", "maxItems").here)
	require.EqualValues(t, policy.MaxSuccessBody,
		schemas.at("SuccessChange", "properties", "body_equals", "maxLength").here)
	require.EqualValues(t, request.MaxChainBytes,
		schemas.at("ClientCertChange", "properties", "chain", "maxLength").here)
	require.EqualValues(t, request.MaxKeyBytes,
		schemas.at("ClientCertChange", "properties", "key", "maxLength").here)
	pattern, _ := schemas.at("JobID", "pattern").here.(string)
	form := regexp.MustCompile(pattern)
	for _, id := range []string{
		"a", strings.Repeat("a", 64), strings.Repeat("a", 65), "rb:" + strings.Repeat("a", 93),
		"rb:" + strings.Repeat("a", 94), "a.b", "", "rb:",
	} {
		require.Equal(t, job.IsID(id), form.MatchString(id), id)
	}
}
