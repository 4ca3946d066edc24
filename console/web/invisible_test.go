package web

import (
	"strings"
	"testing"

	template "github.com/DataDog/datadog-agent/pkg/template/html"
	"github.com/stretchr/testify/require"
)

func TestShowInvisible_KeepsWhatFormsSendBack(t *testing.T) {
	const text = "pay\u202e<b>\"gpj\u2066 é\u200b\U000e0041"
	page := template.Must(template.New("").Parse(`<p title="{{.}}">{{.}}</p><textarea ` +
		`name="a">{{.}}</textarea><input value="{{.}}">{{.}}<i></i>`))
	var b strings.Builder
	require.NoError(t, page.Execute(&b, text))
	got := string(showInvisible([]byte(b.String())))
	const (
		shown = `pay\u202e&lt;b&gt;&#34;gpj\u2066 é\u200b\U000e0041`
		kept  = `pay&#x202e;&lt;b&gt;&#34;gpj&#x2066; é&#x200b;&#xe0041;`
	)
	require.Equal(t, `<p title="`+kept+`">`+shown+`</p><textarea name="a">`+kept+`</textarea><input value="`+kept+`">`+
		shown+`<i></i>`, got)

	const plain = "<p>é ü\u00a0</p>\n\t<br>"
	require.Equal(t, plain, string(showInvisible([]byte(plain))))
	require.Equal(t, `<a \u202e`, string(showInvisible([]byte("<a")))+` \u202e`)
}
