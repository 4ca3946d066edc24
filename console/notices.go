package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/ringback/ringback/console/web"
)

const (
	// noticeTime is how long a notice waits for the page that shows it.
	noticeTime = time.Minute
	// maxNotice bounds what is sealed, in bytes: browsers drop cookies of more than 4,096.
	maxNotice = 2500
)

// sealedNotice is a notice for the page at a path.
type sealedNotice struct {
	web.Notice

	Path string `json:"p"`
}

// setNotice keeps a notice for the page at a path, sealed: nobody else can write one.
func (c *console) setNotice(w http.ResponseWriter, r *http.Request, to *url.URL, n web.Notice) {
	if n.Text == "" {
		return
	}
	text := encodeNotice(sealedNotice{n, to.EscapedPath()})
	for len(text) > maxNotice && n.Text != "" {
		n.Text = cutText(n.Text)
		text = encodeNotice(sealedNotice{n, to.EscapedPath()})
	}
	c.setSealed(w, r, noticeCookie, text, noticeTime)
}

// encodeNotice returns the JSON of a notice, without the escapes that HTML would need.
func encodeNotice(n sealedNotice) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(n); err != nil {
		panic("console: a notice always has a JSON form: " + err.Error())
	}
	return b.Bytes()
}

// cutText returns the first half of a text and an ellipsis; none of one that is short already.
func cutText(text string) string {
	if utf8.RuneCountInString(text) < 100 {
		return ""
	}
	runes := []rune(text)
	return string(runes[:len(runes)/2]) + "…"
}

// takeNotice returns the notice for a page, once.
func (c *console) takeNotice(w http.ResponseWriter, r *http.Request) *web.Notice {
	text, ok := c.open(r, noticeCookie)
	if !ok {
		return nil
	}
	var n sealedNotice
	here, err := target(r, "")
	if json.Unmarshal(text, &n) != nil || err != nil || n.Path != here.EscapedPath() {
		return nil // it is for another page
	}
	c.drop(w, r, noticeCookie)
	return &n.Notice
}
