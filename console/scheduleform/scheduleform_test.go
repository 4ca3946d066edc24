package scheduleform_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/jobform"
	"github.com/ringback/ringback/console/scheduleform"
	"github.com/ringback/ringback/console/web"
)

// browse sends a form as a browser does, and reads it: line ends become CRLF, HTML has no NUL, and a select without a
// selected option sends the first one.
func browse(f scheduleform.Form) scheduleform.Form {
	values := url.Values{}
	sent := strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n", "\x00", "\uFFFD").Replace
	for name, text := range f.Texts {
		values.Set(name, sent(text))
	}
	for name, text := range f.Job {
		values.Set(scheduleform.JobPrefix+name, sent(text))
	}
	fields := append(f.Fields(web.FormErrors{}, scheduleform.Names...),
		f.JobFields(web.FormErrors{}, jobform.ScheduleNames...)...)
	for _, field := range fields {
		isSelected := slices.ContainsFunc(field.Options, func(option web.Link) bool { return option.To == field.Value })
		if field.Kind == "select" && !isSelected {
			values.Set(field.Name, field.Options[0].To)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return scheduleform.Read(r)
}

func texts(texts map[string]string) scheduleform.Form {
	return scheduleform.Form{Texts: texts, Job: jobform.Form{}}
}

// full is a schedule with every field.
func full() client.ScheduleRequest {
	return client.ScheduleRequest{
		Cron: "0 8 * * MON-FRI", Timezone: "Europe/Berlin", Every: 90 * time.Minute, Offset: time.Second,
		Jitter: 1500 * time.Millisecond, StartsAt: time.Date(2026, 11, 24, 14, 30, 0, 0, time.UTC),
		EndsAt: time.Date(2027, 11, 24, 14, 30, 1, 5e6, time.UTC), Job: &client.ScheduleJob{
			Topic: "report", Lane: "eu", URL: "https://shop.example/", Method: "PUT",
			Headers: client.Headers{"X-A": {"1", "2"}, "Authorization": {"[redacted]"}},
			Body:    json.RawMessage(`{"n": 12345678901234567890}`), ContentType: "application/x+json", Retries: new(0),
			Ladder: []time.Duration{time.Second, time.Hour}, Timeout: time.Second, ExpiresIn: time.Hour,
			Labels: map[string]string{"a": "1"}, OnDelivered: client.NoCallback(),
			OnDead: &client.Callback{URL: "https://a.example/", Retries: new(5)},
		},
		Overlap: "skip", CatchUp: &client.CatchUp{Window: 6 * time.Hour, Runs: "all"}, MaxRuns: 100, PauseAfterDead: 3,
		Note: "ask Mia\nor Otto", ManagedBy: "shop", Paused: new(true),
	}
}

// withDefaults returns a schedule with the defaults that the API shows.
func withDefaults(s client.ScheduleRequest) client.ScheduleRequest {
	s.Overlap, s.CatchUp = "allow", &client.CatchUp{Window: time.Hour, Runs: "last"}
	return s
}

func TestForm_MakesTheScheduleThatItIsOf(t *testing.T) {
	for _, s := range []client.ScheduleRequest{
		full(),
		withDefaults(client.ScheduleRequest{Job: &client.ScheduleJob{}}),
		withDefaults(client.ScheduleRequest{
			Every: time.Minute,
			Job:   &client.ScheduleJob{Method: "POST", Body: client.Text("a\r\nb\rc")}, Note: " a\r\nb ",
		}),
		withDefaults(client.ScheduleRequest{
			Every: time.Minute, Job: &client.ScheduleJob{Body: client.Text("a\x00b\r\n")}, Note: "a\x00b\r",
		}),
	} {
		f := browse(scheduleform.Of(s))
		got, errs := f.Request(s)
		require.False(t, errs.Any(), errs)
		require.Equal(t, s, got)
		require.Empty(t, f.Differs(scheduleform.Of(s)))
	}
	s := full()
	s.Paused = new(false)
	got, _ := browse(scheduleform.Of(s)).Request(s)
	require.Nil(t, got.Paused, "as it is")
}

func TestForm_HasTextsThatABrowserWouldChangeInBase64(t *testing.T) {
	text := "a\x00b"
	s := withDefaults(client.ScheduleRequest{Job: &client.ScheduleJob{Body: client.Text(text)}})
	f := browse(scheduleform.Of(s))
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte(text)), f.Job[jobform.Body])
	f.Job[jobform.Body] = base64.StdEncoding.EncodeToString([]byte(text + text))
	got, errs := f.Request(s)
	require.False(t, errs.Any(), errs)
	require.Equal(t, []byte(text+text), got.Job.Body)
	require.Equal(t, "text/plain; charset=utf-8", got.Job.ContentType, "that of the text")
}

func TestForm_SurvivesABrowser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, 366*24*3600*1000).Draw(t, "ms")) * time.Millisecond
		})
		at := rapid.Custom(func(t *rapid.T) time.Time {
			return time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "unix ms")).UTC()
		})
		s := withDefaults(client.ScheduleRequest{
			Cron: rapid.StringMatching(`[0-9*/,]{0,9}`).Draw(t, "cron"), Every: duration.Draw(t, "every"),
			Offset: duration.Draw(t, "offset"), Jitter: duration.Draw(t, "jitter"), StartsAt: at.Draw(t, "starts"),
			EndsAt: at.Draw(t, "ends"), Note: rapid.String().Draw(t, "note"), MaxRuns: rapid.Int64Range(0,
				1<<53-1).Draw(t, "runs"), PauseAfterDead: rapid.IntRange(0, 20).Draw(t, "dead"),
		})
		switch text := rapid.StringN(1, 20, -1).Draw(t, "body"); rapid.IntRange(0, 2).Draw(t, "kind of body") {
		case 0:
			s.Job = &client.ScheduleJob{Body: client.Text(text)}
		case 1:
			s.Job = &client.ScheduleJob{Body: []byte(text)}
		default:
			s.Job = &client.ScheduleJob{}
		}
		got, errs := browse(scheduleform.Of(s)).Request(s)
		require.False(t, errs.Any(), errs)
		require.Equal(t, s, got)
	})
}

func TestForm_ChangesWhatAPersonChanged(t *testing.T) {
	s := full()
	f := browse(scheduleform.Of(s))
	f.Texts[scheduleform.Note] = "ask Otto"
	f.Texts[scheduleform.EndsAt] = ""
	f.Job[jobform.Body] = `{"n": 1}`
	f.Texts[scheduleform.CatchUpRuns], f.Texts[scheduleform.CatchUpWindow] = "", ""
	got, errs := f.Request(s)
	require.False(t, errs.Any(), errs)
	want := full()
	want.Note, want.EndsAt, want.CatchUp, want.Job.Body = "ask Otto", time.Time{}, nil, json.RawMessage(`{"n": 1}`)
	require.Equal(t, want, got)
}

func TestForm_SaysWhatIsWrongByField(t *testing.T) {
	for field, cases := range map[string]map[string]string{
		"every":            {"soon": "is not a duration", "0s": "must be longer than 0"},
		"offset":           {"-1s": "must not be negative"},
		"jitter":           {"1": "is not a duration"},
		"starts_at":        {"tomorrow": "is not a time"},
		"ends_at":          {"2026-13-01": "is not a time"},
		"max_runs":         {"many": "is not a whole number", "0": "must be from 1 to", "-1": "must be from 1"},
		"pause_after_dead": {"21": "must be from 1 to 20", "0": "must be from 1 to 20"},
		"catch_up.window":  {"0s": "must be longer than 0", "x": "is not a duration"},
	} {
		for text, want := range cases {
			_, errs := browse(texts(map[string]string{field: text})).Request(client.ScheduleRequest{})
			require.Contains(t, errs.Of(field), want, "%s %q", field, text)
			require.Len(t, errs.Fields, 1, "%s %q", field, text)
			require.Equal(t, http.StatusUnprocessableEntity, errs.Status)
		}
	}
	f := texts(map[string]string{})
	f.Job = jobform.Form{jobform.Retries: "x"}
	_, errs := browse(f).Request(client.ScheduleRequest{})
	require.Equal(t, map[string]string{"job.retries": "is not a whole number"}, errs.Fields)
	_, errs = browse(texts(map[string]string{"every": "x", "jitter": "x"})).Preview()
	require.Len(t, errs.Fields, 1, "jitter is not previewed")
}

func TestPreview_HasTheTiming(t *testing.T) {
	s := full()
	p, errs := browse(scheduleform.Of(s)).Preview()
	require.False(t, errs.Any())
	require.Equal(t, client.Preview{
		Cron: s.Cron, Timezone: s.Timezone, Every: s.Every, Offset: s.Offset,
		StartsAt: s.StartsAt, EndsAt: s.EndsAt,
	}, p)
	require.True(t, scheduleform.Of(s).HasTiming())
	require.False(t, texts(nil).HasTiming())
}

func TestErrorsOf_NamesTheFieldsOfTheForm(t *testing.T) {
	errs, ok := scheduleform.ErrorsOf(&client.Problem{Status: 422, Errors: []client.FieldError{
		{Field: "?cron", Detail: "is required"},
		{Field: "/job/headers/X-A", Detail: "is too long"},
		{Field: "/catch_up/runs", Detail: "is unknown"},
		{Field: "/job/body_text", Detail: "is too long"},
		{Field: "/more", Detail: "is unknown"},
	}})
	require.True(t, ok)
	require.Equal(t, web.FormErrors{Status: 422, General: []string{"more is unknown"}, Fields: map[string]string{
		"cron": "is required", "job.headers": "X-A: is too long", "catch_up.runs": "is unknown",
		"job.body": "is too long",
	}}, errs)
	_, ok = scheduleform.ErrorsOf(&client.Problem{Status: 404})
	require.False(t, ok)
	_, ok = scheduleform.ErrorsOf(http.ErrServerClosed)
	require.False(t, ok)
}

// without are fields of the client's request that have no field of the form, with the reason.
var without = map[string]string{
	"managed_by": "it is what files say of themselves: kept as it is",
}

// fieldsOf returns the JSON names of the fields of a struct, those of nested objects behind a dot.
func fieldsOf(t reflect.Type, prefix string) (names []string) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if nested := field.Type; nested.Kind() == reflect.Pointer && (name == "job" || name == "catch_up") {
			names = append(names, fieldsOf(nested.Elem(), name+".")...)
			continue
		}
		names = append(names, prefix+name)
	}
	return names
}

func TestNames_AreAllFieldsOfTheClient(t *testing.T) {
	names := slices.Clone(scheduleform.Names)
	for _, name := range jobform.ScheduleNames {
		if name != jobform.BodyAs { // says how the field body is read
			names = append(names, scheduleform.JobPrefix+name)
		}
	}
	var want []string
	for _, name := range fieldsOf(reflect.TypeFor[client.ScheduleRequest](), "") {
		if without[name] == "" {
			want = append(want, name)
		}
	}
	require.ElementsMatch(t, want, names)
	for _, field := range texts(nil).Fields(web.FormErrors{}, scheduleform.Names...) {
		require.NotEmpty(t, field.Label, field.Name)
	}
	for _, field := range texts(nil).JobFields(web.FormErrors{}, jobform.ScheduleNames...) {
		require.NotEmpty(t, field.Label, field.Name)
	}
}

func TestTimezones_AreKnown(t *testing.T) {
	for _, name := range scheduleform.Timezones {
		_, err := time.LoadLocation(name)
		require.NoError(t, err)
	}
}
