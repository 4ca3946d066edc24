package browser

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

// TestScreens takes pictures of the pages into the folder SCREENS: make screens.
func TestScreens(t *testing.T) {
	dir := os.Getenv("SCREENS")
	if dir == "" {
		return // no pictures are asked for
	}
	require.NoError(t, os.MkdirAll(dir, 0o750))
	s := startService(t, "")
	s.seed(t, "")
	b := s.open(t)
	b.signIn(rootToken)
	b.traffic()
	for _, p := range readPages(t, s.reviveAll(t)) {
		for _, look := range []struct {
			name   string
			width  int64
			isDark bool
		}{{"light", 1280, false}, {"dark", 1280, true}, {"narrow", 360, false}} {
			b.dark(look.isDark)
			b.do(chromedp.EmulateViewport(look.width, 800), chromedp.Navigate(s.url+p.path))
			b.wait(`document.readyState === 'complete'`)
			time.Sleep(300 * time.Millisecond) // the first live update
			picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, p.name+"-"+look.name+".png"), picture, 0o600))
		}
	}
}

// traffic registers jobs for some seconds while the page Now is open, so that its charts have something to show.
func (b *tab) traffic() {
	b.t.Helper()
	b.goTo("")
	end := time.Now().Add(40 * time.Second)
	for n := 0; time.Now().Before(end); n++ {
		to, lane := "/", "eu.pay.example.com:443"
		if n%9 == 0 {
			to, lane = "/flaky", "flaky.example.com:443"
		}
		_, err := b.s.api.Register(b.t.Context(), client.Job{Topic: "shop.orders", Lane: lane, URL: "http://" + b.s.inbox + to, Ladder: []time.Duration{time.Second, 2 * time.Second}})
		require.NoError(b.t, err)
		time.Sleep(30 * time.Millisecond)
	}
}
