package doctor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	serverTimeout = 5 * time.Second
	maxAnswer     = 64 << 10 // bytes of an answer that are read
)

// Server is what the checks of a running service look at.
type Server struct {
	// URL is the base of its API.
	URL string
	// Named says that the operator has named it: then it must answer.
	Named bool
	// Token is a token of the API; empty: none. It is sent over TLS only, and only to a named server: anybody on this
	// machine can listen at the address of a service that is stopped.
	Token string
	// Version is this program's.
	Version string
}

// Check returns the checks of a running service.
func (s Server) Check() Check {
	names := []Name{ServerReady, ServerVersion, ServerClock}
	if strings.HasPrefix(strings.ToLower(s.URL), "https:") {
		names = append(names, ServerTLS)
	}
	return Check{Subject: "server " + s.shown(), Names: names, Run: func(ctx context.Context) ([]Finding, error) {
		return s.look(ctx, s.client())
	}}
}

// shown returns the URL without user, password and query.
func (s Server) shown() string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return "(the URL cannot be read)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// look asks whether the service is ready, and for its version.
func (s Server) look(ctx context.Context, client *http.Client) (found []Finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	sent := time.Now()
	ready, err := s.get(ctx, client, "/readyz")
	if err != nil {
		return s.unreachable(err)
	}
	took := time.Since(sent)
	ringback, version, f := judgeReady(ready.status, ready.text)
	found = ServerReady.of(f)
	if date, err := http.ParseTime(ready.date); err == nil {
		// The header has whole seconds: it is half a second early on average.
		at := date.Add(500 * time.Millisecond)
		found = append(found, ServerClock.of(
			compareClocks("the server", at.Sub(sent.Add(took/2)), took/2+500*time.Millisecond))...)
	}
	if c := ready.certificate; c != nil {
		f, ok := judgeCertificate("server", c, sent)
		if ok {
			f = good("the certificate is valid until %s", c.NotAfter.UTC().Format(time.DateOnly))
		}
		found = append(found, ServerTLS.of(f)...)
	}
	switch {
	case !ringback:
		return found, errNotRingback
	case version != "":
		return append(found, ServerVersion.of(s.compareVersion(version))...), nil
	}
	answer, err := s.get(ctx, client, "/v1/version")
	if err != nil {
		return found, err
	}
	return append(found, ServerVersion.of(s.judgeVersion(answer.status, answer.text))...), nil
}

// errNotRingback is why nothing else is asked.
var errNotRingback = errors.New("what answers is not Ringback")

// client returns a client that follows no redirects: they would take the token elsewhere. It asks the address of the
// settings directly, as ringback health does.
func (s Server) client() *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	if s.Named {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// sendsToken reports whether the server can be given the token: its certificate says who it is, and nobody can read it
// on the way.
func (s Server) sendsToken() bool {
	return s.Token != "" && s.Named && strings.HasPrefix(strings.ToLower(s.URL), "https:")
}

// answer is what is read of a response.
type answer struct {
	status      int
	date        string
	certificate *x509.Certificate // nil: no TLS
	text        []byte
}

// get makes a request.
func (s Server) get(ctx context.Context, client *http.Client, path string) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.URL, "/")+path, http.NoBody)
	if err != nil {
		return a, errors.New("the URL of the server cannot be read")
	}
	if path != "/readyz" && s.sendsToken() {
		req.Header.Set("Authorization", "Bearer "+s.Token)
	}
	resp, err := client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL
		}
		return a, fmt.Errorf("GET %s: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	a = answer{status: resp.StatusCode, date: resp.Header.Get("Date")}
	if resp.TLS != nil && len(resp.TLS.PeerCertificates) > 0 {
		a.certificate = resp.TLS.PeerCertificates[0]
	}
	if a.text, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return a, fmt.Errorf("GET %s: %w", path, err)
	}
	return a, nil
}

// unreachable returns what it means that the server does not answer.
func (s Server) unreachable(err error) ([]Finding, error) {
	if !s.Named && errors.Is(err, syscall.ECONNREFUSED) {
		return ServerReady.of(unknown("Start it with ringback serve, or name the running one with --server.",
			"no service runs at the address of these settings")), errors.New("no service runs")
	}
	return ServerReady.of(fault("Look at the service's log, and at firewalls and proxies in between.", "%v", err)), err
}

// judgeReady judges the answer of /readyz. It also returns whether Ringback answers, and the version that it tells;
// empty: none.
func judgeReady(status int, text []byte) (ringback bool, version string, f Finding) {
	var answer struct {
		Status  json.RawMessage `json:"status"` // a word, or the number of a problem
		Code    string          `json:"code"`
		Detail  string          `json:"detail"`
		Version string          `json:"version"`
		Stores  []struct {
			Name   string `json:"name"`
			Ready  bool   `json:"ready"`
			Detail string `json:"detail"`
		} `json:"stores"`
	}
	err := json.Unmarshal(text, &answer)
	ringback = err == nil && (status == http.StatusOK && string(answer.Status) == `"ready"` ||
		status != http.StatusOK && answer.Code != "")
	switch {
	case status == http.StatusOK && !ringback:
		return false, "", fault("Correct --addr or --server.", "%v", errNotRingback)
	case status != http.StatusOK && answer.Detail != "":
		return ringback, "",
			fault("Mend what it names; it becomes ready by itself.", "%s (%d)", answer.Detail, status)
	case status != http.StatusOK:
		return ringback, "", fault("Correct --addr or --server, or look at the proxy in between.",
			"not ready: status %d", status)
	}
	for _, one := range answer.Stores {
		if !one.Ready {
			return true, answer.Version, warn("Mend what it names; the namespaces of that store are answered 503 "+
				"until then.", "ready, but not the store %s: %s", one.Name, one.Detail)
		}
	}
	return true, answer.Version, good("accepts and delivers jobs")
}

// judgeVersion judges the answer of /v1/version.
func (s Server) judgeVersion(status int, text []byte) Finding {
	var answer struct {
		Version string `json:"version"`
	}
	err := json.Unmarshal(text, &answer)
	switch {
	case status == http.StatusUnauthorized && !s.sendsToken():
		return unknown("Run ringback doctor on the machine of the service, or name the service with --server https://…",
			"the server tells its version without a token to its own machine only, and doctor sends the token over "+
				"https only, to a named server")
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return unknown("Run ringback doctor with the settings and variables of the service.",
			"the server refuses the token of these settings (%d)", status)
	case status != http.StatusOK || err != nil || answer.Version == "":
		return unknown("Look at the service's log.", "the server does not tell its version (%d)", status)
	}
	return s.compareVersion(answer.Version)
}

// compareVersion judges the version of the service.
func (s Server) compareVersion(version string) Finding {
	if version != s.Version {
		return warn("Restart the service with the new program, or run the doctor of its version.",
			"the service is version %s, this program is %s", version, s.Version)
	}
	return good("%s, like this program", version)
}
