package job

import (
	"strings"
	"unicode/utf8"
)

// ResponseText returns the receiver's body as text, without a last character that the size limit cut; false: there is
// none, or it is not text.
func (a *Attempt) ResponseText() (string, bool) {
	body := a.Body
	if len(body) >= MaxAttemptBody {
		for cut := 1; cut < utf8.UTFMax; cut++ {
			if last := len(body) - cut; utf8.RuneStart(body[last]) {
				if !utf8.FullRune(body[last:]) {
					body = body[:last]
				}
				break
			}
		}
	}
	text := string(body)
	return text, text != "" && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
