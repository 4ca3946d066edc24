package job

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

var now = time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)

// fieldsOf returns the fields of errors.
func fieldsOf(faults []FieldError) []string {
	var fields []string
	for _, f := range faults {
		fields = append(fields, f.Field)
	}
	return fields
}

func TestValidate_AcceptsAValidRegistration(t *testing.T) {
	good := []New{
		{},
		{Spec: Spec{ID: strings.Repeat("a", 64), URL: "https://shop.example/hooks?x=%23"}},
		{Spec: Spec{URL: "http://[::1]:8080/", Method: "DELETE"}},
		{Spec: Spec{URL: "http://bücher.example/"}},
		{Spec: Spec{URL: "HTTP://shop.example"}},
		{Spec: Spec{URL: "https://shop.example/a ü?q=a%20b+c&x[]={\"~\"}|%FF"}},
		{Spec: Spec{Queue: Queue{Topic: "...", Lane: ".a"}}},
		{Spec: Spec{Queue: Queue{Topic: "a._-Z9", Lane: "[::1]:8080"}}, Delay: MaxAhead},
		{RunAt: now.Add(MaxAhead), ExpiresAt: now.Add(2 * MaxAhead)},
		{RunAt: now.Add(-time.Hour), ExpiresAt: now.Add(-time.Hour)},
		{ExpiresIn: time.Millisecond},
		{Spec: Spec{Terms: policy.Terms{
			Ladder: policy.Ladder{policy.MinRung, policy.MaxRung}, Retries: new(0), Timeout: MinTimeout,
		}}},
		{Spec: Spec{Terms: policy.Terms{Ladder: make100(), Retries: new(MaxRetries), Timeout: MaxTimeout}}},
		{Spec: Spec{Header: map[string][]string{"x-a": {"", "b\tc", "ü"}, "Content-Type": {"a/b"}}}},
		{Spec: Spec{Labels: map[string]string{"a.b": strings.Repeat("x", 256), "rb": ""}}},
	}
	for _, n := range good {
		require.Empty(t, Validate(n, now))
	}
}

// make100 returns the longest ladder.
func make100() policy.Ladder {
	return slices.Repeat(policy.Ladder{time.Second}, policy.MaxRungs)
}

func TestValidate_NamesInvalidFields(t *testing.T) {
	n := New{
		Spec: Spec{
			ID:          "a.b",
			Queue:       Queue{Topic: "_x", Lane: "a/b"},
			URL:         "http://me@shop.example/",
			Method:      "get",
			ContentType: "a\nb",
			Header: map[string][]string{
				"Host": {"x"}, "X-A": {"a\rb"}, "x-a": nil, "Bad Name": {"x"}, strings.Repeat("n", 300) + " ": {"x"},
			},
			Labels: map[string]string{"a b": "", "rb.x": "", "long": strings.Repeat("x", 257), "nul": "\x00"},
			Terms: policy.Terms{
				Ladder: policy.Ladder{time.Second, 0, policy.MaxRung + 1}, Retries: new(-1), Timeout: MaxTimeout + 1,
			},
		},
		Delay: -1, RunAt: now.Add(MaxAhead + time.Hour),
		ExpiresIn: -1, ExpiresAt: time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	faults := Validate(n, now)
	require.ElementsMatch(t, []string{
		"/id", "/topic", "/lane", "/url", "/method", "/content_type", "/ladder/1", "/ladder/2", "/retries", "/timeout",
		"/delay", "/expires_in", "/headers/Bad Name", "/headers/Host", "/headers/X-A", "/headers/x-a", "/headers/x-a",
		"/headers/" + strings.Repeat("n", maxPointerName) + "…",
		"/labels/a b", "/labels/long", "/labels/nul", "/labels/rb.x",
		"/run_at", "/run_at", "/expires_at", "/expires_at",
	}, fieldsOf(faults))
	for _, f := range faults {
		require.NotEmpty(t, f.Detail, f.Field)
	}
	require.Equal(t, faults, Validate(n, now), "the order is always the same")
}

func TestValidate_HasExactBounds(t *testing.T) {
	cases := map[string]New{
		"/id":         {Spec: Spec{ID: strings.Repeat("a", 65)}},
		"/topic":      {Spec: Spec{Queue: Queue{Topic: strings.Repeat("a", 65)}}},
		"/lane":       {Spec: Spec{Queue: Queue{Lane: strings.Repeat("a", 129)}}},
		"/url":        {Spec: Spec{URL: "http://a.example/" + strings.Repeat("a", MaxURL-16)}},
		"/retries":    {Spec: Spec{Terms: policy.Terms{Retries: new(MaxRetries + 1)}}},
		"/ladder":     {Spec: Spec{Terms: policy.Terms{Ladder: append(make100(), time.Second)}}},
		"/timeout":    {Spec: Spec{Terms: policy.Terms{Timeout: MinTimeout - 1}}},
		"/delay":      {Delay: MaxAhead + 1},
		"/expires_in": {ExpiresIn: 2*MaxAhead + 1},
		"/run_at":     {RunAt: now.Add(MaxAhead + 1)},
		"/expires_at": {ExpiresAt: now.Add(2*MaxAhead + 1)},
		"/headers":    {Spec: Spec{Header: map[string][]string{"X": {strings.Repeat("a", MaxHeaders-4)}}}},
	}
	for field, n := range cases {
		require.Equal(t, []string{field}, fieldsOf(Validate(n, now)))
	}
	lines := slices.Repeat([]string{"a"}, MaxHeaderLines)
	headers := New{Spec: Spec{Header: map[string][]string{"X": lines}}}
	require.Empty(t, fieldsOf(Validate(headers, now)))
	headers.Header["Y"] = []string{"a"}
	require.Equal(t, []string{"/headers"}, fieldsOf(Validate(headers, now)))
	require.Len(t, cases["/url"].URL, MaxURL+1)
	require.Equal(t, []string{"/ladder"},
		fieldsOf(Validate(New{Spec: Spec{Terms: policy.Terms{Ladder: policy.Ladder{}}}}, now)))
}

func TestValidate_RejectsDotSegmentNames(t *testing.T) {
	for _, name := range []string{".", ".."} {
		faults := Validate(New{Spec: Spec{Queue: Queue{Topic: name, Lane: name}}}, now)
		require.ElementsMatch(t, []string{"/topic", "/lane"}, fieldsOf(faults), name)
	}
}

func TestValidate_RejectsInvalidURLs(t *testing.T) {
	for _, u := range []string{
		"shop.example", "/hooks", "http:", "http://", "http:///x", "http://:80", "http:shop.example",
		"ftp://a.example", "//a.example", "http://a:b@a.example", "http://@a.example", "http://a.example/#",
		"http://a.example:0/", "http://a.example:99999",
		"http://a.example:x/", "http://a b/", "http://a.example/\x00", "http://[::1", "javascript:alert(1)",
		"http://a.example/?a b", "http://a.example/?a=ü", "http://a.example/?\xff", "http://a.example/?a\tb",
		"http://a.example/?\x7f",
	} {
		faults := Validate(New{Spec: Spec{URL: u}}, now)
		require.Equal(t, []string{"/url"}, fieldsOf(faults), u)
		require.NotEmpty(t, faults[0].Detail)
		require.NotContains(t, faults[0].Detail, "a:b", "a password is not repeated")
	}
}

func TestValidate_RejectsReservedHeadersInEverySpelling(t *testing.T) {
	for _, name := range []string{
		"Host", "content-length", "CONNECTION", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
		"Proxy-Authorization", "proxy-x", "Expect", "Webhook-Signature", "webhook-id", "Ringback-Topic", "ringback-x",
		// As receivers behind CGI and its kin read them.
		"Webhook_Id", "webhook_SIGNATURE", "Ringback_Attempt", "RINGBACK_X", "Transfer_Encoding", "content_length",
		"Keep_Alive", "Proxy_Authorization", "Webhook.Id", "Ringback~Topic", "Content|Length", "Proxy", "PROXY",
	} {
		header := map[string][]string{name: {"x"}}
		at := []string{"/headers/" + JSONPointer("", name)[1:]}
		require.Equal(t, at, fieldsOf(Validate(New{Spec: Spec{Header: header}}, now)))
		require.Equal(t, at, fieldsOf(ValidateTopic(policy.Topic{Headers: header})))
		require.Equal(t, at, fieldsOf(ValidateLane(policy.Lane{Headers: header})))
		callback := &policy.Callback{URL: "https://a.example/", Headers: header}
		require.Equal(t, []string{"/on_dead" + at[0]},
			fieldsOf(Validate(New{Spec: Spec{Terms: policy.Terms{OnDead: callback}}}, now)))
	}
	for _, name := range []string{"X_Tenant", "Webhooks-Id", "Hosts", "X-Proxy", "Tea", "Content_Type", "X.Y"} {
		require.Empty(t, Validate(New{Spec: Spec{Header: map[string][]string{name: {"x"}}}}, now), name)
	}
}

func TestCanonicalHeader(t *testing.T) {
	canonical := map[string][]string{"X-A": {"1"}}
	require.Equal(t, canonical, CanonicalHeader(canonical))
	require.Equal(t, canonical, CanonicalHeader(map[string][]string{"x-a": {"1"}}))
	require.Nil(t, CanonicalHeader(nil))
}

func TestValidateTopic_AcceptsTheBuiltInPolicy(t *testing.T) {
	require.Empty(t, ValidateTopic(policy.Builtin()))
	require.Empty(t, ValidateTopic(policy.Topic{}))
	require.Empty(t, ValidateTopic(policy.Topic{
		Jitter: new(0.0), Workers: 1, LaneConcurrency: MaxShare,
		GiveUpOn: []string{"410", "3xx", "4xx", "5xx", "300", "599"}, IDWindow: new(MaxIDWindow),
		KeepDead: policy.Retention{For: new(time.Duration(0)), Max: new(int64(0)), MaxBytes: new(int64(0))},
	}))
}

func TestValidateTopic_NamesInvalidFields(t *testing.T) {
	faults := ValidateTopic(policy.Topic{
		Ladder: policy.Ladder{0}, Retries: new(1001), Jitter: new(1.01), Timeout: 1, MaxAge: -1, Workers: -1,
		LaneConcurrency: MaxShare + 1, Deliver: "mail", URL: "x", Headers: map[string][]string{"Te": {"x"}},
		GiveUpOn: []string{"410", "xxx", "41", "2xx", "200", "600", "6xx", "299", "199"}, IDWindow: new(-time.Second),
		KeepDelivered: policy.Retention{For: new(MaxAhead + 1), Max: new(int64(-1)), MaxBytes: new(int64(-1))},
		KeepDead:      policy.Retention{Max: new(int64(1_000_000_001))},
	})
	require.ElementsMatch(t, []string{
		"/ladder/0", "/retries", "/jitter", "/timeout", "/max_age", "/workers", "/lane_concurrency",
		"/deliver", "/url", "/headers/Te", "/give_up_on/1", "/give_up_on/2", "/give_up_on/3", "/give_up_on/4",
		"/give_up_on/5", "/give_up_on/6", "/give_up_on/7", "/give_up_on/8", "/id_window",
		"/keep_delivered/for", "/keep_delivered/max", "/keep_delivered/max_bytes", "/keep_dead/max",
	}, fieldsOf(faults))
	for _, f := range faults {
		require.NotEmpty(t, f.Detail, f.Field)
	}
}

func TestCheck_SaysTheRulesOfTags(t *testing.T) {
	type inner struct {
		Texts []string `api:"texts" validate:"max=2,dive,oneof=a b c"`
	}
	type outer struct {
		Span   *time.Duration `api:"span" validate:"omitnil,backlog"`
		Count  int            `api:"count,editable" validate:"omitempty,min=1"`
		Note   string         `api:"note" validate:"max=3"`
		Ladder policy.Ladder  `api:"ladder" validate:"omitnil,rungs,dive,rung"`
		inner
		In    *inner `api:"in"`
		To    string `api:"to" validate:"target"`
		Long  string `api:"long" validate:"max=20,target"`
		Space string `api:"space" validate:"namespace"`
	}
	require.Equal(t, []FieldError{
		{"/span", "must be 1s to 3653d"},
		{"/count", "must be 1 or more"},
		{"/note", "must be at most 3 characters"},
		{"/ladder", "must have 1 to 100 entries"},
		{"/texts", "must have at most 2 entries"},
		{"/in/texts/1", "must be a, b or c"},
		{"/to", "must begin with http:// or https://"},
		{"/long", "must be at most 20 characters"},
		{"/space", NamespaceRule},
	}, Check(outer{
		Span: new(time.Duration(0)), Count: -1, Note: "four", Ladder: policy.Ladder{},
		inner: inner{Texts: []string{"a", "a", "a"}}, In: &inner{Texts: []string{"a", "d"}},
		To: "ftp://a.example", Long: "https://a.example/long", Space: "A",
	}))
}

func FuzzValidate(f *testing.F) {
	f.Add("id", "topic", "lane", "http://a.example/", "X-A", "value", int64(5))
	f.Fuzz(func(t *testing.T, id, topic, lane, target, name, value string, n int64) {
		job := New{
			Spec: Spec{
				ID: id, Queue: Queue{Topic: topic, Lane: lane}, URL: target, Method: value, ContentType: value,
				Header: map[string][]string{name: {value}}, Labels: map[string]string{name: value},
				Terms: policy.Terms{
					Ladder: policy.Ladder{time.Duration(n)}, Retries: new(int(n)),
					Timeout: time.Duration(n),
				},
			},
			Delay: time.Duration(n), RunAt: time.UnixMilli(n),
		}
		for _, fault := range Validate(job, now) {
			require.NotEmpty(t, fault.Detail)
			require.True(t, strings.HasPrefix(fault.Field, "/"), fault.Field)
		}
	})
}

func TestValidate_CopiesNoFields(t *testing.T) {
	n := New{Spec: Spec{ID: "close-4711", Queue: Queue{Topic: "order.close"}, URL: "https://shop.example/hooks/close"}}
	require.Less(t, testing.AllocsPerRun(100, func() { _ = Validate(n, now) }), 10.0)
}
