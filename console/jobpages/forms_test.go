package jobpages_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/consoletest"
)

var (
	inputs    = regexp.MustCompile(`<input [^>]*name="([^"]+)"[^>]* value="([^"]*)"`)
	textareas = regexp.MustCompile(`(?s)<textarea [^>]*name="([^"]+)"[^>]*>\n(.*?)</textarea>`)
	selects   = regexp.MustCompile(`(?s)<select [^>]*name="([^"]+)"[^>]*>(.*?)</select>`)
	selected  = regexp.MustCompile(`<option value="([^"]*)" selected>`)
)

// post returns the fields of a page's form as a browser sends them, with other values of some.
func post(page string, changes ...string) []string {
	var fields []string
	add := func(name, value string) {
		if at := slices.Index(changes, name); at >= 0 && at%2 == 0 {
			value = changes[at+1]
		}
		fields = append(fields, name, strings.ReplaceAll(html.UnescapeString(value), "\n", "\r\n"))
	}
	for _, m := range inputs.FindAllStringSubmatch(page, -1) {
		add(m[1], m[2])
	}
	for _, m := range textareas.FindAllStringSubmatch(page, -1) {
		add(m[1], m[2])
	}
	for _, m := range selects.FindAllStringSubmatch(page, -1) {
		if chosen := selected.FindStringSubmatch(m[2]); chosen != nil {
			add(m[1], chosen[1])
		}
	}
	return fields
}

// register registers a job that has every field.
func register(t *testing.T, site *consoletest.Site) *client.JobInfo {
	t.Helper()
	site.Register(client.Job{
		ID: "order-1", Topic: "order", Lane: "eu", URL: "https://fine.example/a", Method: "PUT",
		Headers: client.Headers{"Authorization": {"Bearer secret"}, "X-Team": {"shop", "web"}},
		Body:    json.RawMessage(`{"n": 12345678901234567890}`), Delay: time.Hour, Retries: new(3),
		Ladder: []time.Duration{time.Second, 50 * time.Hour}, Timeout: 2 * time.Second, ExpiresIn: 5 * time.Hour,
		Labels: map[string]string{"order": "47=11"}, OnDelivered: client.NoCallback(),
		OnDead: &client.Callback{
			URL:     "https://fine.example/dead",
			Headers: client.Headers{"X-Api-Key": {"k"}, "X-B": {"b"}},
		},
	})
	return get(t, site, "order-1")
}

func get(t *testing.T, site *consoletest.Site, id string) *client.JobInfo {
	t.Helper()
	j, err := site.API.Get(t.Context(), id)
	require.NoError(t, err)
	return j
}

func TestEdit_SendsWhatDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		before := register(t, site)
		site.SignIn(site.Token("mia", "operate"))
		page := site.Golden("edit", "jobs/order-1/edit")
		unchanged := site.Follow(site.Post("jobs/order-1/edit", post(page)...)).OK()
		require.Contains(t, unchanged, "is as it was")
		require.Equal(t, before.Revision, get(t, site, "order-1").Revision)

		done := site.Follow(site.Post("jobs/order-1/edit",
			post(page, "retries", "9", "timeout", "", "labels", "", "delay", "2h", "body", `{"n": 1e400}`)...)).OK()
		require.Contains(t, done, "Job order-1 is edited.")
		require.Regexp(t, `edited: [a-z_, ]*retries[a-z_, ]* by mia`, consoletest.Text(done))
		j := get(t, site, "order-1")
		require.Equal(t, 9, *j.Retries)
		require.Zero(t, j.Timeout)
		require.Empty(t, j.Labels)
		require.Equal(t, `{"n": 1e400}`, string(j.Body))
		require.Equal(t, before.Headers, j.Headers)
		require.Equal(t, before.ExpiresAt, j.ExpiresAt)
		require.Equal(t, before.Ladder, j.Ladder)
		require.WithinDuration(t, time.Now().Add(2*time.Hour), j.NextAttemptAt, time.Second)
	})
}

func TestEdit_OfABodyKeepsItsContentType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		for id, contentType := range map[string]string{
			"none": "", "plain": "text/plain", "spelt": "Text/Plain;charset=UTF-8",
		} {
			site.Register(client.Job{
				ID: id, URL: "https://fine.example/", Delay: time.Hour, Body: client.Text("a"),
				ContentType: contentType,
			})
			before := get(t, site, id)
			site.Follow(site.Post("jobs/"+id+"/edit", post(site.Get("jobs/"+id+"/edit").OK(), "body", "b")...)).OK()
			require.Equal(t, "b", string(get(t, site, id).Body))
			require.Equal(t, before.ContentType, get(t, site, id).ContentType)
		}
	})
}

func TestEdit_ReplacesAnExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		register(t, site)
		for _, old := range []string{get(t, site, "order-1").ExpiresAt.Format(time.RFC3339Nano), ""} {
			page := site.Get("jobs/order-1/edit").OK()
			site.Follow(site.Post("jobs/order-1/edit", post(page, "expires_in", "2h", "expires_at", old)...)).OK()
			require.WithinDuration(t, time.Now().Add(2*time.Hour), get(t, site, "order-1").ExpiresAt, time.Second)
			site.Advance(time.Minute)
		}
		site.Follow(site.Post("jobs/order-1/edit", post(site.Get("jobs/order-1/edit").OK(), "expires_at", "")...)).OK()
		require.Zero(t, get(t, site, "order-1").ExpiresAt)
	})
}

func TestEdit_KeepsTheFormThatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		register(t, site)
		page := site.Get("jobs/order-1/edit").OK()
		wrong := site.Post("jobs/order-1/edit",
			post(page, "retries", "5000", "body", "{", "ladder", "soon")...).Is(http.StatusUnprocessableEntity)
		require.Contains(t, wrong, "is not JSON in line 1")
		require.Contains(t, wrong, `value="5000"`)
		require.Contains(t, wrong, `value="soon"`)
		wrong = site.Post("jobs/order-1/edit", post(page, "retries", "5000")...).Is(http.StatusUnprocessableEntity)
		require.Regexp(t, `id="e-retries">must`, wrong)
		require.Contains(t, page, "A number can be changed, but not removed.")
		wrong = site.Post("jobs/order-1/edit", post(page, "retries", "")...).Is(http.StatusUnprocessableEntity)
		require.Regexp(t, `id="e-retries">must not be null`, wrong)
		wrong = site.Post("jobs/order-1/edit",
			post(page, "url", "https://other.example/")...).Is(http.StatusUnprocessableEntity)
		require.Contains(t, wrong, "must be resent")
	})
}

func TestEdit_DoesNotOverwriteTheChangeOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		register(t, site)
		site.SignIn(site.Token("mia", "operate"))
		page := site.Get("jobs/order-1/edit").OK()
		_, err := site.API.Edit(t.Context(), "order-1", client.Change{Retries: new(1)})
		require.NoError(t, err)
		conflict := site.Post("jobs/order-1/edit", post(page, "timeout", "7s")...).Is(http.StatusPreconditionFailed)
		require.Contains(t, conflict, "changed while you edited it (edited by root)")
		require.Contains(t, conflict, `value="7s"`)
		require.Contains(t, consoletest.Text(conflict),
			"Compared with the job as it is now, saving again changes retries and timeout.")
		require.Equal(t, 1, *get(t, site, "order-1").Retries)
		site.Post("jobs/order-1/edit", post(conflict)...).Is(http.StatusSeeOther)
		require.Equal(t, 7*time.Second, get(t, site, "order-1").Timeout)
	})
}

func TestForms_WithoutARevisionAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		before := register(t, site)
		for _, action := range []string{"edit", "run", "cancel", "revive"} {
			for _, rev := range []string{"", "x", "-1"} {
				page := site.Post("jobs/order-1/"+action, "revision", rev).Is(http.StatusUnprocessableEntity)
				require.Contains(t, consoletest.Text(page),
					"does not say which revision it showed, so nothing was changed")
			}
			require.GreaterOrEqual(t, site.Post("jobs/order-1/"+action, "revision", "0").Code, 400,
				"jobs have no revision 0")
		}
		require.Equal(t, before.Revision, get(t, site, "order-1").Revision)
	})
}

func TestCopy_RegistersTheSameWithoutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, true)
		from := register(t, site)
		site.SignIn(site.Token("mia", "admin"))
		page := site.Golden("copy", "jobs/order-1/copy")
		require.Contains(t, consoletest.Text(page),
			"nobody can read them: Authorization and on_dead.headers.X-Api-Key.")
		fields := post(page, "delay", "1h")
		first := site.Post("jobs/order-1/copy", fields...)
		require.Contains(t, site.Follow(first).OK(), "a copy of order-1")
		again := site.Post("jobs/order-1/copy", fields...)
		require.Equal(t, first.Header().Get("Location"), again.Header().Get("Location"),
			"a form that is sent twice registers one copy")

		j := get(t, site, strings.TrimPrefix(first.Header().Get("Location"), "../../jobs/"))
		require.NotEqual(t, from.ID, j.ID)
		require.Equal(t, client.Headers{"X-Team": {"shop", "web"}}, j.Headers)
		require.Equal(t, client.Headers{"X-B": {"b"}}, j.OnDead.Headers)
		require.Equal(t, from.Body, j.Body)
		require.Equal(t, from.Labels, j.Labels)
		require.Equal(t, from.OnDelivered, j.OnDelivered, "it is switched off")
		require.Equal(t, []any{
			from.Topic, from.Lane, from.URL, from.Method, from.ContentType, *from.Retries,
			from.Ladder, from.Timeout,
		},
			[]any{j.Topic, j.Lane, j.URL, j.Method, j.ContentType, *j.Retries, j.Ladder, j.Timeout})

		require.Contains(t,
			site.Post("jobs/order-1/copy", post(page, "id", "order-1")...).Is(http.StatusConflict), "order-1")
		require.Contains(t, site.Post("jobs/order-1/copy",
			post(page, "url", "nonsense")...).Is(http.StatusUnprocessableEntity), `value="nonsense"`)
	})
}

func TestCopy_HasBodiesThatNoFormCanShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		long := strings.Repeat("x", 100<<10)
		site.Register(
			client.Job{ID: "long", URL: "https://fine.example/", Body: client.Text(long)},
			client.Job{ID: "bytes", URL: "https://fine.example/", Body: []byte("\x00\r\n\xff")},
		)
		for _, id := range []string{"long", "bytes"} {
			page := site.Get("jobs/" + id + "/copy").OK()
			require.Less(t, len(page), 100_000)
			site.Follow(site.Post("jobs/"+id+"/copy", post(page, "id", id+"-2")...)).OK()
			from, to := get(t, site, id), get(t, site, id+"-2")
			require.Equal(t, from.Body, to.Body)
			require.Equal(t, from.ContentType, to.ContentType)
		}
		require.Less(t, len(site.Get("jobs/long").OK()), 100_000)
	})
}
