package nowpage

import (
	"regexp"
	"strings"

	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/access"
)

// start says how to begin.
type start struct {
	Curl  string // empty: the token may not register jobs
	TryTo string
}

var (
	hostPattern   = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]+$`)
	prefixPattern = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+/?$`)
)

func newStart(v *web.Visit) *start {
	if !v.Can(access.RegisterJob) {
		return new(start)
	}
	lines := []string{"curl " + apiAddress(v) + "/v1/jobs"}
	if v.Who.Actor != "" {
		lines = append(lines, `-H "Authorization: Bearer $RINGBACK_TOKEN"`)
	}
	if (v.Who.Root || v.Who.Actor == "") && v.Namespace != "default" {
		lines = append(lines, "-H 'Ringback-Namespace: "+v.Namespace+"'") // a name has no quotes
	}
	topic := ""
	if v.Who.Topics != nil {
		topic = `"topic": "` + strings.ReplaceAll(v.Who.Topics[0], "*", "hello") + `", `
	}
	lines = append(lines, `-H 'Content-Type: application/json'`,
		`-d '{`+topic+`"url": "https://example.com/hooks", "delay": "5s"}'`)
	return &start{Curl: strings.Join(lines, " \\\n  "), TryTo: v.Path("try")}
}

// apiAddress returns the address of the API as the browser reaches it.
func apiAddress(v *web.Visit) string {
	r := v.Request
	scheme, host, prefix := "http", r.Host, r.Header.Get("X-Forwarded-Prefix")
	if r.TLS != nil {
		scheme = "https"
	}
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	if proto := strings.ToLower(strings.TrimSpace(first)); proto == "https" || proto == "http" {
		scheme = proto
	}
	if !hostPattern.MatchString(host) {
		host = "localhost:8080"
	}
	if !prefixPattern.MatchString(prefix) {
		prefix = ""
	}
	return scheme + "://" + host + strings.TrimSuffix(prefix, "/")
}
