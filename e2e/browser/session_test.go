package browser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

// post sends a form to a path of the console as the page's scripts can, and waits for the answer.
func (b *tab) post(path, form string) {
	b.t.Helper()
	b.eval(`(() => { const r = new XMLHttpRequest(); r.open('POST', ` + quote(b.s.url+path) + `, false);
		r.setRequestHeader('Content-Type', 'application/x-www-form-urlencoded'); r.send(` + quote(form) + `) })()`)
}

func TestForms_SurviveTheEndOfTheSession(t *testing.T) {
	t.Parallel()
	s := startService(t, "")
	_, err := s.api.Register(t.Context(),
		client.Job{ID: "later", Topic: "shop", URL: "http://" + s.inbox + "/", Lane: "bank", Delay: time.Hour})
	require.NoError(t, err)
	b := s.open(t)
	b.signIn(rootToken)

	b.goTo("schedules/new")
	b.fill("#f-name", "nightly")
	b.fill("#f-cron", "0 3 * * *")
	b.wait(`document.querySelector('#schedule-preview').innerText.includes('03:00')`)
	b.post("sign-out", "")
	b.fill("#f-cron", "0 4 * * *")
	b.wait(`document.querySelector('#live-state').innerText.includes('signed out')`)
	require.Equal(t, s.url+"sign-in", value[string](b, `document.querySelector('#live-state a').href`))
	require.Equal(t, "nightly 0 4 * * *",
		value[string](b, `document.querySelector('#f-name').value + ' ' + document.querySelector('#f-cron').value`))
	require.Equal(t, 1, value[int](b, `document.querySelectorAll('main').length`))
	b.post("sign-in", "token="+rootToken) // as in another tab
	b.fill("#f-cron", "0 5 * * *")
	b.wait(`document.querySelector('#schedule-preview').innerText.includes('05:00')`)

	b.goTo("topics/shop/lanes/bank")
	b.wait(`document.querySelector('#live-state').innerText === 'live'`)
	b.fill("#f-lane_rate", "7/s")
	b.post("sign-out", "")
	b.wait(`document.querySelector('#live-state').innerText.includes('signed out')`)
	require.Equal(t, "7/s", value[string](b, `document.querySelector('#f-lane_rate').value`))
	b.post("sign-in", "token="+rootToken)
	b.eval(`document.dispatchEvent(new Event('visibilitychange'))`) // the reader comes back from the other tab
	b.wait(`document.querySelector('#live-state').innerText === 'live'`)
	require.Equal(t, "7/s", value[string](b, `document.querySelector('#f-lane_rate').value`))
}

func TestLivePages_SayThatTheirSubjectIsGone(t *testing.T) {
	t.Parallel()
	s := startService(t, "")
	_, err := s.api.PutSchedule(t.Context(), "nightly",
		client.ScheduleRequest{Cron: "0 3 * * *", Job: &client.ScheduleJob{URL: "http://" + s.inbox + "/"}})
	require.NoError(t, err)
	b := s.open(t)
	b.signIn(rootToken)
	b.goTo("schedules/nightly")
	b.wait(`document.querySelector('#live-state').innerText === 'live'`)
	require.NoError(t, s.api.DeleteSchedule(t.Context(), "nightly"))
	b.wait(`document.querySelector('#live-state').innerText.includes('gone')`)
	b.waitText("Schedule nightly") // the page stays
}

func TestLivePages_LeadToSigningInWhenTheSessionEnds(t *testing.T) {
	t.Parallel()
	s := startService(t, "")
	b := s.open(t)
	b.signIn(rootToken)
	b.wait(`document.querySelector('#live-state').innerText === 'live'`)
	b.post("sign-out", "")
	b.wait(`!!document.querySelector('#token')`)
}
