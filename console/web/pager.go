package web

// Pager is the data of the template "pager": links to other pages of a list. Cursors lead forward only; the browser leads back.
type Pager struct{ First, Next string }

// Pager returns the links of a list on this page, whose cursor is the query parameter cursor. next is the cursor of the next page;
// empty: it is the last.
func (v *Visit) Pager(next string) Pager {
	q := v.Request.URL.Query()
	q.Del("live")
	link := func(cursor string) string {
		q.Del("cursor")
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		to := v.Base + v.Request.URL.EscapedPath()
		if len(q) > 0 {
			to += "?" + q.Encode()
		}
		return to
	}
	var p Pager
	if v.Query("cursor") != "" {
		p.First = link("")
	}
	if next != "" {
		p.Next = link(next)
	}
	return p
}
