package browser

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

// flow is something that people do in the console.
type flow struct {
	name string
	does func(t *testing.T, b *tab)
}

// flows are those of all engines, with receivers that answer and some that do not, in this order.
var flows = []flow{
	{"try it, and see it arrive", tryIt},
	{"mend a job", mendJob},
	{"pause and resume a topic", pauseTopic},
	{"change a policy", changePolicy},
	{"mend a lane", mendLane},
	{"revive dead letters", reviveDead},
	{"keep a schedule", keepSchedule},
}

// lesser is the last flow, since it signs out.
var lesser = flow{"sign in with a lesser token", signInWithLess}

func TestFlows_OnSQLite(t *testing.T) {
	t.Parallel()
	runFlows(t, "", append(slices.Clone(flows), flow{"watch live, and pause watching", watchLive},
		flow{"use the keyboard", useKeyboard}, lesser))
}

func TestFlows_OnRedis(t *testing.T) {
	t.Parallel()
	runFlows(t, redistest.Start(t).URL(), append(slices.Clone(flows), flow{"open every page", openEveryPage}, lesser))
}

// runFlows clicks through the console of a service.
func runFlows(t *testing.T, store string, flows []flow) {
	t.Helper()
	s := startService(t, store)
	s.seed(t, hostile)
	b := s.open(t)
	b.signIn(rootToken)
	for _, flow := range flows {
		if !t.Run(flow.name, func(t *testing.T) { flow.does(t, b.in(t)) }) {
			return // those behind it begin where it ends
		}
	}
}

func tryIt(_ *testing.T, b *tab) {
	b.goTo("try")
	b.waitText("Send a job and watch it arrive.")
	b.fill("#f-body", `{"hello": 12345678901234567890}`)
	b.button("Send the job")
	b.waitText("was delivered")
	// in the inbox, as it was sent
	b.wait(`document.querySelector('main').textContent.includes('12345678901234567890')`)
	b.button("Sign the requests of this topic")
	b.button("Send the job")
	b.waitText("verified")
}

func mendJob(t *testing.T, b *tab) {
	b.goTo("jobs")
	b.fill("[data-search]", "retried-1")
	b.submit("main form button")
	b.waitText("Job retried-1")
	b.waitText("answered 503")
	b.follow("Edit")
	b.fill("#f-url", "http://"+b.s.inbox+"/")
	b.button("Save")
	b.button("Run now")
	b.waitText("delivered")

	b.goTo("jobs/later-1")
	b.button("Cancel job")
	b.waitText("cancelled")
	b.goTo("jobs/dead-1")
	b.follow("Register a copy")
	b.fill("#f-id", "copy-1")
	b.fill("#f-url", "http://"+b.s.inbox+"/")
	b.press(`document.querySelector('main form button.primary')`)
	b.waitText("copy-1")
	copied, err := b.s.api.Get(t.Context(), "copy-1")
	require.NoError(t, err)
	require.Contains(t, string(copied.Body), "4711")
}

func pauseTopic(t *testing.T, b *tab) {
	b.goTo("topics/shop.orders")
	b.fill("#f-note", "the receiver moves")
	b.button("Pause the topic")
	b.waitText("the receiver moves")
	topic, err := b.s.api.GetTopic(t.Context(), "shop.orders")
	require.NoError(t, err)
	require.True(t, topic.Paused)
	require.Equal(t, "root", topic.PausedBy)
	b.goTo("")
	b.waitText("shop.orders")
	b.goTo("topics/shop.orders")
	b.button("Resume the topic")
	b.waitText("Pause the topic")
}

func changePolicy(t *testing.T, b *tab) {
	b.goTo("topics/shop.orders/policy")
	b.fill("#f-ladder", "7s, 7m")
	b.wait(`document.querySelector('#policy-preview').innerText.includes('7m7s after the first')`) // while one types
	b.fill("#f-ladder", "7s, never")
	b.button("Save")
	b.waitText("Nothing was changed")
	require.Equal(t, "7s, never", value[string](b, `document.querySelector('#f-ladder').value`))
	b.fill("#f-ladder", "7s, 7m")
	b.button("Save")
	topic, err := b.s.api.GetTopic(t.Context(), "shop.orders")
	require.NoError(t, err)
	require.Equal(t, []time.Duration{7 * time.Second, 7 * time.Minute}, topic.Ladder)
}

func mendLane(t *testing.T, b *tab) {
	b.goTo("topics/shop.refunds/lanes/bank.example.com:443")
	b.waitText("The breaker is open")
	b.fill("#f-note", "the bank moves")
	b.button("Pause the lane")
	b.waitText("the bank moves")
	b.button("Resume the lane")
	b.fill("#f-lane_rate", "2/s")
	b.button("Save")
	b.waitText("is changed: lane_rate")
	lane, err := b.s.api.GetLane(t.Context(), "shop.refunds", "bank.example.com:443")
	require.NoError(t, err)
	require.False(t, lane.Paused)
	require.Equal(t, "2/s", lane.LaneRate)
	b.follow("Secrets")
	b.button("Add")
	require.True(t, strings.HasPrefix(value[string](b, `document.querySelector('#secret').innerText.trim()`), "whsec_"))
}

func reviveDead(_ *testing.T, b *tab) {
	b.goTo("dead")
	b.waitText("4 jobs are dead")
	b.follow("Revive…")
	b.waitText("4 jobs match")
	b.fill("#f-rate", "4/h")
	b.button("Revive 4 jobs")
	b.waitText("Reviving")
	b.do(chromedp.Reload())
	b.waitText("Reviving") // the progress is the server's
	b.button("Stop")
	b.waitText("stopped")
	b.goTo("work")
	b.waitText("stopped")
}

func keepSchedule(t *testing.T, b *tab) {
	b.goTo("schedules")
	b.follow("New schedule")
	b.fill("#f-name", "nightly")
	b.fill("#f-cron", "0 3 * * *")
	b.wait(`document.querySelector('#schedule-preview').innerText.includes('03:00')`)
	b.fill("[name='job.url'], [name=url]", "http://"+b.s.inbox+"/nightly")
	b.button("Save")
	b.waitText("Schedule nightly")
	b.button("Run now")
	b.waitText("This job of the schedule nightly was registered")
	b.goTo("schedules/nightly")
	b.fill("#f-note", "the shop is closed")
	b.button("Pause")
	b.waitText("the shop is closed")
	b.button("Resume")
	b.button("Delete")
	_, err := b.s.api.GetSchedule(t.Context(), "nightly")
	require.ErrorIs(t, err, client.ErrNotFound)
}

// openEveryPage opens the pages of testdata/pages.txt, which are looked at more closely on SQLite.
func openEveryPage(t *testing.T, b *tab) {
	for _, p := range b.s.pages(t) {
		b.goTo(p.path)
		require.NotEmpty(t, value[string](b, `document.querySelector('.lead').innerText`),
			"%s begins with a sentence", p.name)
	}
}

func watchLive(t *testing.T, b *tab) {
	b.goTo("topics/live.topic")
	b.goTo("")
	b.wait(`document.querySelector('#live-state').innerText.includes('live')`)
	_, err := b.s.api.Register(t.Context(),
		client.Job{ID: "live-1", Topic: "live.topic", URL: "http://" + b.s.inbox + "/", Delay: time.Hour})
	require.NoError(t, err)
	b.goTo("topics/live.topic")
	b.waitText("1 job waits")
	b.wait(`document.querySelector('#live-state').innerText.includes('live')`)
	_, err = b.s.api.Register(t.Context(),
		client.Job{ID: "live-2", Topic: "live.topic", URL: "http://" + b.s.inbox + "/", Delay: time.Hour})
	require.NoError(t, err)
	b.waitText("2 jobs wait")

	b.do(chromedp.Click(chromedp.CSS("#live-toggle")))
	b.wait(`document.querySelector('#live-state').innerText.includes('paused')`)
	b.do(chromedp.Reload()) // it is remembered
	b.wait(`document.querySelector('#live-state').innerText.includes('paused')`)
	_, err = b.s.api.Register(t.Context(),
		client.Job{ID: "live-3", Topic: "live.topic", URL: "http://" + b.s.inbox + "/", Delay: time.Hour})
	require.NoError(t, err)
	require.NotContains(t, b.describe(), "3 jobs wait")
	b.do(chromedp.Click(chromedp.CSS("#live-toggle")))
	b.waitText("3 jobs wait")
}

func useKeyboard(t *testing.T, b *tab) {
	b.goTo("jobs")
	b.do(chromedp.KeyEvent("/"))
	b.wait(`document.activeElement.matches('[data-search]')`)
	b.eval(`document.activeElement.blur()`)
	b.do(chromedp.KeyEvent("?"))
	b.wait(`document.querySelector('#keys').open`)
	b.do(chromedp.Click(chromedp.CSS("#keys button.primary")))
	b.wait(`!document.querySelector('dialog[open]')`)
	b.do(chromedp.KeyEvent("j"))
	first := value[string](b, `document.activeElement.innerText`)
	b.do(chromedp.KeyEvent("j"))
	require.NotEqual(t, first, value[string](b, `document.activeElement.innerText`))
	b.do(chromedp.KeyEvent("k"))
	require.Equal(t, first, value[string](b, `document.activeElement.innerText`))
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("t"))
	b.waitText("Topics")
	require.True(t, strings.HasSuffix(b.location(), "/topics"), b.location())
}

func signInWithLess(t *testing.T, b *tab) {
	b.goTo("settings/tokens")
	b.fill("#f-name", "nora")
	b.button("Create the token")
	token := value[string](b, `document.querySelector('#secret').innerText.trim()`)
	require.True(t, strings.HasPrefix(token, "rb_"), token)
	b.do(chromedp.Reload())
	require.False(t, value[bool](b, `!!document.querySelector('#secret')`), "it is shown once")
	b.press(`[...document.querySelectorAll('header button')].find((e) => e.innerText.trim() === 'Sign out')`)
	b.signIn(token)
	b.goTo("topics/shop.orders")
	b.waitText("shop.orders")
	require.False(t, value[bool](b, `!!document.querySelector('main form[method=post]')`), "nothing to change")
	status := value[int](b, `(() => { const r = new XMLHttpRequest(); r.open('POST', 'shop.orders/pause', false);
		r.setRequestHeader('Content-Type', 'application/x-www-form-urlencoded'); r.send('note=x'); return r.status `+
		`})()`)
	require.Equal(t, http.StatusForbidden, status)
}

func TestFlows_WithoutJavaScript(t *testing.T) {
	t.Parallel()
	s := startService(t, "")
	s.seed(t, hostile)
	b := s.open(t)
	b.withoutScripts()
	b.signIn(rootToken)
	b.waitText(" lanes fail: ")
	b.goTo("topics/shop.orders")
	b.fill("#f-note", "without scripts")
	b.button("Pause the topic")
	b.waitText("without scripts")
	b.goTo("jobs?topic=shop.orders&state=scheduled")
	b.waitText("later-1")
	b.goTo("jobs/later-1")
	b.button("Cancel job")
	b.waitText("cancelled")
	b.goTo("topics/shop.orders/policy")
	b.fill("#f-ladder", "9s, 9m")
	b.button("Save")
	ctx, cancel := context.WithTimeout(t.Context(), testkit.MustCome)
	defer cancel()
	topic, err := s.api.GetTopic(ctx, "shop.orders")
	require.NoError(t, err)
	require.Equal(t, []time.Duration{9 * time.Second, 9 * time.Minute}, topic.Ladder)
	b.goTo("dead")
	b.follow("Revive…")
	b.button("Revive 4 jobs")
	b.waitText("4")
}
