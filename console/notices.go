package console

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/ringback/ringback/console/web"
)

const (
	// noticeTime is how long a notice waits for the page that shows it.
	noticeTime = time.Minute
	// maxNotice bounds a notice's text, in bytes, so that it fits into a cookie.
	maxNotice = 1500
)

// setNotice keeps a notice for the next page, sealed: nobody else can write one.
func (c *console) setNotice(w http.ResponseWriter, r *http.Request, n web.Notice) {
	if n.Text == "" {
		return
	}
	if len(n.Text) > maxNotice {
		n.Text = string([]rune(n.Text)[:maxNotice/4]) + "…"
	}
	text, err := json.Marshal(n) //nolint:gosec // it is sealed, and only its reader gets it
	if err != nil {
		c.log.Error("console notice failed", "err", err)
		return
	}
	http.SetCookie(w, newCookie(r, noticeCookie, c.seals.Seal(noticeCookie, text, c.now().Add(noticeTime)), noticeTime))
}

// takeNotice returns the notice for a page, once.
func (c *console) takeNotice(w http.ResponseWriter, r *http.Request) *web.Notice {
	value := cookie(r, noticeCookie)
	if value == "" {
		return nil
	}
	http.SetCookie(w, newCookie(r, noticeCookie, "", 0))
	text, ok := c.seals.Open(noticeCookie, value, c.now())
	n := new(web.Notice)
	if !ok || json.Unmarshal(text, n) != nil {
		return nil
	}
	return n
}
