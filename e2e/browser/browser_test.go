package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// openPage opens a URL in a tab, and returns the title of the page.
func openPage(ctx context.Context, t *testing.T, address string) string {
	t.Helper()
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(address)))
	title, err := chromedp.Run(ctx, chromedp.Title())
	require.NoError(t, err)
	return title
}

func TestBrowser_OpensPages(t *testing.T) {
	t.Parallel()
	page := "data:text/html," + url.PathEscape("<title>loading</title><script>document.title = 6 * 7</script>")
	require.Equal(t, "42", openPage(newTab(t), t, page))
}

func TestBrowser_GivesEachTestItsOwnProfile(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		title := "new"
		if _, err := r.Cookie("seen"); err == nil {
			title = "known"
		}
		w.Header().Set("Set-Cookie", "seen=1")
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>" + title + "</title>"))
	}))
	t.Cleanup(server.Close)
	first, second := newTab(t), newTab(t)
	require.Equal(t, "new", openPage(first, t, server.URL))
	require.Equal(t, "known", openPage(first, t, server.URL))
	require.Equal(t, "new", openPage(second, t, server.URL))
}

func TestBrowser_ReachesNoOtherHost(t *testing.T) {
	t.Parallel()
	err := chromedp.Do(newTab(t), chromedp.Navigate("http://example.com/"))
	require.ErrorContains(t, err, "ERR_NAME_NOT_RESOLVED")
}
