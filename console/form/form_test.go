package form_test

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
)

// policyForm has fields that need a description; the others are made of the type.
var policyForm = form.Of[client.Policy](form.Group{Title: "All", Fields: []form.Field{
	{Field: web.Field{Name: "deliver", Label: "Jobs are", Kind: "select", Options: []web.Link{
		{To: "", Text: "default"}, {To: "pull", Text: "leased"},
	}}},
	{Field: web.Field{Name: "success.body_equals", Kind: "textarea"}},
	{Field: web.Field{Name: "client_cert.key", Kind: "textarea"}, Secret: true, Unset: "[redacted]"},
	{Field: web.Field{Name: "on_dead.url"}, Essential: true},
	{Field: web.Field{Name: "on_dead.method"}, Unset: "POST"},
}})

const stored = `{"topic": "order", "timeout": "10s", "retries": null, "ordered": false,
	"breaker": {"failures": 5, "open": "1m"},
	"headers": {"X-A": " 1\t", "Authorization": "[redacted]", "X-C": ["1", "2"]},
	"on_dead": {"url": "https://x.example/", "method": "POST", "headers": null, "include": []},
	"success": {"status": ["200", "2xx"], "body_equals": "\n ok\r\n", "body_contains": null},
	"client_cert": {"chain": "a\nb\n", "key": "[redacted]"}, "give_up_on": []}`

// browsed returns texts as a browser sends them.
func browsed(texts form.Texts) url.Values {
	sent := url.Values{}
	lines := strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n")
	for name, text := range texts {
		sent.Set(name, lines.Replace(text))
	}
	return sent
}

func TestDocument_OfWhatNobodyChangedIsWhatIsStored(t *testing.T) {
	values := policyForm.Values(json.RawMessage(stored))
	texts := policyForm.Typed(browsed(policyForm.Texts(values)), policyForm.Texts(values))
	doc, changed, errs := policyForm.Document(values, texts)
	require.False(t, errs.Any())
	require.Empty(t, changed)
	require.JSONEq(t, `{"timeout": "10s", "ordered": false, "breaker": {"failures": 5, "open": "1m"},
		"headers": {"X-A": " 1\t", "Authorization": "[redacted]", "X-C": ["1", "2"]},
		"on_dead": {"url": "https://x.example/", "method": "POST", "include": []},
		"success": {"status": ["200", "2xx"], "body_equals": "\n ok\r\n"},
		"client_cert": {"chain": "a\nb\n", "key": "[redacted]"}, "give_up_on": []}`, string(doc))
}

// The members that are not typed are as they are stored: of the documents only what is typed is compared.
func TestDocument_HasWhatWasTyped(t *testing.T) {
	for _, c := range []struct {
		name  string
		typed form.Texts
		want  string
	}{
		{"spaces around it", form.Texts{"timeout": " 10s "}, `{"timeout": "10s"}`},
		{"a duration", form.Texts{"timeout": "3s", "max_age": "60"}, `{"timeout": "3s", "max_age": 60}`},
		{"durations", form.Texts{"ladder": "15s,3m  10"}, `{"ladder": ["15s", "3m", 10]}`},
		{"zero", form.Texts{"retries": "0", "jitter": "0.0"}, `{"retries": 0, "jitter": 0.0}`},
		{
			"no number",
			form.Texts{"retries": "many", "workers": "NaN", "jitter": `"1"`},
			`{"retries": "many", "workers": "NaN", "jitter": "\"1\""}`,
		},
		{"a list", form.Texts{"give_up_on": "410, 4xx"}, `{"give_up_on": ["410", "4xx"]}`},
		{
			"an empty list",
			form.Texts{"success.status": "none"},
			`{"success": {"status": [], "body_equals": "\n ok\r\n"}}`,
		},
		{"yes", form.Texts{"ordered": "true"}, `{"ordered": true}`},
		{"neither yes nor no", form.Texts{"ordered": "perhaps"}, `{"ordered": "perhaps"}`},
		{"a default", form.Texts{"timeout": "", "give_up_on": ""}, `{"timeout": null, "give_up_on": null}`},
		{
			"a default of a member",
			form.Texts{"breaker.open": "", "breaker.failures": "7"},
			`{"breaker": {"failures": 7, "open": null}}`,
		},
		{"no object", form.Texts{"breaker.open": "", "breaker.failures": " "}, `{"breaker": null}`},
		{"a new object", form.Texts{"keep_dead.max": "3"}, `{"keep_dead": {"max": 3}}`},
		{
			"no callback, with its other fields",
			form.Texts{"on_dead.url": "", "on_dead.retries": "3"},
			`{"on_dead": null}`,
		},
		{
			"a header that is added, one that is gone, and one whose spaces a form does not keep",
			form.Texts{"headers": "authorization: [redacted]\nx-a: 1\n\nX-B: a: b\nx-b:  c "},
			`{"headers": {"X-A": " 1\t", "Authorization": "[redacted]", "X-B": ["a: b", "c"], "X-C": null}}`,
		},
		{
			"lines are kept",
			form.Texts{"success.body_equals": " a\n b "},
			`{"success": {"status": ["200", "2xx"], "body_equals": " a\n b "}}`,
		},
		{"another key", form.Texts{"client_cert.key": "new\n"}, `{"client_cert": {"chain": "a\nb\n", "key": "new\n"}}`},
		{"no certificate", form.Texts{"client_cert.chain": ""}, `{"client_cert": null}`},
	} {
		values := policyForm.Values(json.RawMessage(stored))
		doc, _, errs := policyForm.Document(values,
			policyForm.Typed(browsed(c.typed), policyForm.Texts(values)))
		require.False(t, errs.Any(), c.name)
		var all, want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(doc, &all), c.name)
		require.NoError(t, json.Unmarshal([]byte(c.want), &want), c.name)
		for member, value := range want {
			require.JSONEq(t, string(value), string(all[member]), c.name)
		}
	}
}

func TestDocument_NamesWhatDiffers(t *testing.T) {
	values := policyForm.Values(json.RawMessage(stored))
	texts := policyForm.Texts(values)
	texts["on_dead.url"], texts["breaker.open"], texts["breaker.failures"] = "", "", ""
	texts["url"] = "https://y.example/"
	_, changed, _ := policyForm.Document(values, texts)
	require.ElementsMatch(t, []string{"on_dead", "breaker", "url"}, changed)
	texts["headers"] = "X-A: 1\nnonsense"
	_, _, errs := policyForm.Document(values, texts)
	require.Equal(t, "line 2 must be a name and a value, such as X-Team: shop", errs.Of("headers"))
}

// members are the names of the fields of a type, as its JSON has them.
func members(of reflect.Type) (names []string) {
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct:
			for _, inner := range members(f.Type.Elem()) {
				names = append(names, name+"."+inner)
			}
		default:
			names = append(names, name)
		}
	}
	return names
}

func TestForm_HasEveryMemberOnce(t *testing.T) {
	require.ElementsMatch(t, members(reflect.TypeFor[client.Policy]()), policyForm.Names())
	require.ElementsMatch(t, append(slices.DeleteFunc(members(reflect.TypeFor[client.Job]()), func(name string) bool {
		return strings.Contains(name, ".") // a callback is one field
	}), "body_as", "on_delivered", "on_dead"), form.Job.Names())
	for _, f := range policyForm.Sections(nil, nil, web.FormErrors{})[0].Fields[5:] {
		require.NotEmpty(t, f.Label, f.Name)
	}
	require.Panics(t, func() {
		form.Of[client.Policy](form.Group{Fields: []form.Field{{Field: web.Field{Name: "no_member"}}}})
	})
}

// What the form makes of a policy is read as that policy, whatever its members are.
func TestForm_TextsOfAPolicyGiveIt(t *testing.T) {
	callback := &client.Callback{
		URL: "https://x.example/?a=1&b=\"<script>", Method: "PUT", Retries: new(0), Timeout: 1500 * time.Millisecond,
		Headers: client.Headers{"X-A": {"1", "2"}, "X-Empty": {""}}, Include: []string{"body", "query"},
	}
	policy := client.Policy{
		Ladder: []time.Duration{time.Millisecond, 90 * time.Second, 50 * time.Hour}, Retries: new(0), Jitter: new(0.0),
		Timeout: time.Second, Workers: 3, Rate: "100/s", Ordered: new(true), Deliver: "push", GiveUpOn: []string{},
		Success: &client.Success{Status: []string{"200"}, BodyEquals: "\n ok\n"}, OnDelivered: callback,
		Breaker: &client.Breaker{Failures: new(0), Open: time.Minute}, IDWindow: new(time.Duration(0)),
		OnBacklog: &client.Backlog{URL: "https://x.example/", OlderThan: time.Hour, MoreThan: 12},
		KeepDead:  &client.Retention{For: new(time.Hour), Max: new(int64(7)), MaxBytes: "2MiB"},
	}
	raw, err := json.Marshal(policy)
	require.NoError(t, err)
	doc, _, errs := policyForm.Document(nil, policyForm.Texts(policyForm.Values(raw)))
	require.False(t, errs.Any())
	var got client.Policy
	require.NoError(t, json.Unmarshal(doc, &got))
	require.Equal(t, policy, got)
}

func TestSections_ShowTextsDefaultsAndErrors(t *testing.T) {
	effective := policyForm.Values(json.RawMessage(`{"timeout": "10s", "deliver": "pull", "retries": 9}`))
	var errs web.FormErrors
	errs.Add("timeout", "must be 100ms to 10m")
	section := policyForm.Sections(form.Texts{"timeout": "1h", "client_cert.key": "s3cret"}, effective, errs)[0]
	shown := make(map[string]web.Field)
	for _, f := range section.Fields {
		shown[f.Name] = f
	}
	require.True(t, section.Set)
	require.Equal(t, []string{"1h", "", "must be 100ms to 10m"},
		[]string{shown["timeout"].Value, shown["timeout"].Placeholder, shown["timeout"].Error})
	require.Equal(t, "9", shown["retries"].Placeholder)
	require.Equal(t, "default: leased", shown["deliver"].Options[0].Text)
	require.Empty(t, shown["client_cert.key"].Value)
	require.Equal(t, "it was not saved, and is not shown: paste it again", shown["client_cert.key"].Error)
	require.False(t, policyForm.Sections(nil, effective, web.FormErrors{})[0].Set)
}

func TestTables_HaveWhatHolds(t *testing.T) {
	tables := policyForm.Tables(policyForm.Values(json.RawMessage(stored)),
		policyForm.Values(json.RawMessage(`{"timeout": "10s"}`)))
	require.Len(t, tables, 1)
	require.Contains(t, tables[0].Rows, form.Row{Label: "Timeout", Text: "10s"})
	require.Contains(t, tables[0].Rows, form.Row{Label: "Breaker: open", Text: "1m", Default: true})
	for _, row := range tables[0].Rows {
		require.NotContains(t, row.Label, "key")
		require.NotContains(t, row.Label, "Ordered", "it is off")
	}
}
