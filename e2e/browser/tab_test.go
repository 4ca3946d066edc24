package browser

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// tab is a tab of the browser, on a service.
type tab struct {
	t   *testing.T
	ctx context.Context // that of the browser's tab
	s   *service
}

// open opens a tab. Exceptions of scripts fail the test.
func (s *service) open(t *testing.T) *tab {
	t.Helper()
	b := &tab{t: t, ctx: newTab(t), s: s}
	var mu sync.Mutex
	var thrown []string
	require.NoError(t, chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*runtime.EventExceptionThrown); ok && e.ExceptionDetails != nil {
			mu.Lock()
			defer mu.Unlock()
			thrown = append(thrown, fmt.Sprintf("%+v", e.ExceptionDetails))
		}
	}))
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		require.Empty(t, thrown, "scripts threw")
	})
	return b
}

// in returns the tab for a part of the test.
func (b *tab) in(t *testing.T) *tab { return &tab{t: t, ctx: b.ctx, s: b.s} }

// do runs actions.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testkit.MustCome)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		require.NoError(b.t, err, "at %s:\n%s", b.location(), b.describe())
	}
}

// location returns the URL of the page.
func (b *tab) location() string {
	at, _ := chromedp.Run(b.ctx, chromedp.Location())
	return at
}

// describe returns the text of the page, for failures.
func (b *tab) describe() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), testkit.MustCome)
	defer cancel()
	text, err := chromedp.Run(ctx,
		chromedp.Evaluate[string](`document.body ? document.body.innerText.slice(0, 1500) : ""`))
	if err != nil {
		return err.Error()
	}
	return text
}

// goTo opens a path below the console.
func (b *tab) goTo(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.s.url + path))
}

// signIn signs in.
func (b *tab) signIn(token string) {
	b.t.Helper()
	b.goTo("sign-in")
	b.fill("#token", token)
	b.submit("main form button.primary")
}

// fill sets the value of an input, as typing it does.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf(`!!document.querySelector(%q)`, selector))
	b.eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new `+
		`Event('input', {bubbles: true})) })()`, selector, text))
}

// eval evaluates an expression whose value does not matter.
func (b *tab) eval(expression string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](expression))
}

// value evaluates an expression of some type.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return v
}

// submit clicks what leads to another page, and waits for it.
func (b *tab) submit(selector string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS(selector)))
	b.eval(`window.leaving = true`)
	b.do(chromedp.Click(chromedp.CSS(selector)))
	b.wait(`!window.leaving && document.readyState === 'complete'`)
}

// wait waits until an expression is true. It cannot be evaluated while the browser goes to another page.
func (b *tab) wait(expression string) {
	b.t.Helper()
	end := time.Now().Add(testkit.MustCome)
	for {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		if err == nil && is {
			return
		}
		if time.Now().After(end) || b.ctx.Err() != nil {
			require.FailNow(b.t, "it does not become true", "%s (%v) at %s:\n%s", expression, err,
				b.location(), b.describe())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// waitText waits until the main part has a text.
func (b *tab) waitText(text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf(`document.querySelector('main').innerText.replace(/\s+/g, ' ').includes(%q)`, text))
}

// follow clicks the link with a text.
func (b *tab) follow(text string) {
	b.t.Helper()
	b.press(fmt.Sprintf(`[...document.querySelectorAll('a')].find((a) => a.innerText.trim() === %q)`, text))
}

// button clicks the button with a text that leads to another page.
func (b *tab) button(text string) {
	b.t.Helper()
	b.press(fmt.Sprintf(`[...document.querySelectorAll('main button')].find((e) => e.innerText.trim() === %q)`, text))
}

// press clicks an element, and waits for the page that it leads to. If a question is asked first, the answer is yes.
// The element is found and clicked at once: a live update may replace it at any moment.
func (b *tab) press(element string) {
	b.t.Helper()
	b.wait(`!!` + element)
	b.eval(`window.leaving = true; ` + element + `.click()`)
	b.wait(`!window.leaving || !!document.querySelector('dialog[open]')`)
	if value[bool](b, `!!document.querySelector('dialog[open]')`) {
		b.do(chromedp.Click(chromedp.CSS("dialog[open] button.primary, dialog[open] button.danger")))
	}
	b.wait(`!window.leaving && document.readyState === 'complete'`)
}

// dark switches between light and dark.
func (b *tab) dark(on bool) {
	b.t.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	b.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}))
}

// withoutScripts switches JavaScript off.
func (b *tab) withoutScripts() {
	b.t.Helper()
	b.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
}

// call returns the action of a command of the protocol.
func call[P any](command cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

// links returns the paths below the console that the page's links lead to.
func (b *tab) links() []string {
	b.t.Helper()
	base, err := url.Parse(b.s.url)
	require.NoError(b.t, err)
	var all []string
	for _, to := range value[[]string](b, `[...document.querySelectorAll('a[href]')].map((a) => `+
		`a.href.replace(/#.*/, ''))`) {
		u, err := url.Parse(to)
		require.NoError(b.t, err)
		if u.Host == base.Host && strings.HasPrefix(u.Path, base.Path) {
			all = append(all, to)
		}
	}
	return all
}
