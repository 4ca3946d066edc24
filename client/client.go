package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options are the options of New. The zero value is useful where the server requires no token.
type Options struct {
	// Token authenticates requests. It is not printed by String, Format and LogValue, and no error contains it.
	Token string
	// Namespace is the namespace of requests with a root token, or of a server without tokens; empty: that of the
	// token.
	Namespace string
	// HTTP makes the requests; nil: a new client, which uses the proxy of the environment. Redirects are never
	// followed: they would take the token elsewhere. Its Timeout is replaced by Options.Timeout, as it would cut
	// streams.
	HTTP *http.Client
	// Timeout bounds one try of a request, in addition to the time for which the server is asked to wait; zero: 30 s.
	Timeout time.Duration
	// MaxRetries bounds the repeats of a request; zero: as many as its context allows; negative: none.
	MaxRetries int
	// UserAgent is the header User-Agent; empty: ringback-go.
	UserAgent string
}

// String returns the options without the token.
func (o Options) String() string {
	token := ""
	if o.Token != "" {
		token = " token=[redacted]"
	}
	return fmt.Sprintf("namespace=%q timeout=%s max_retries=%d%s", o.Namespace, o.Timeout, o.MaxRetries, token)
}

// Format prints the options without the token, whatever the verb.
func (o Options) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, o.String()) }

// LogValue returns what a log line shows.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// MarshalText returns the options without the token, for programs that write their configuration as JSON.
func (o Options) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Client calls a server. Make one with New.
type Client struct {
	base string // scheme, host and the prefix of paths, without a slash at the end
	opts Options
	http *http.Client
	// authorize adds the token to a request. It is a function, so that no way of printing a Client shows the token.
	authorize func(http.Header)
}

// defaultTimeout bounds one try of a request.
const defaultTimeout = 30 * time.Second

// New returns a client of the server at a URL such as https://ringback.internal, perhaps with a prefix of paths. It
// makes no request.
func New(server string, o Options) (*Client, error) {
	u, err := url.Parse(server)
	switch {
	case err != nil:
		// the cause has the URL, which may have a password
		return nil, errors.New("client: the server's URL cannot be parsed: it must be as https://ringback.internal")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("client: the server's URL must begin with http:// or https:// and have a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil,
			errors.New("client: the server's URL must not have a user, a query or a fragment: set Options.Token")
	case strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil,
			errors.New("client: Options.Token must be visible ASCII without spaces: is there a newline at its end?")
	case o.Timeout < 0:
		return nil, errors.New("client: Options.Timeout must not be negative")
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.UserAgent = cmp.Or(o.UserAgent, "ringback-go")
	c := &Client{base: strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), opts: o}
	auth := "Bearer " + o.Token
	c.authorize = func(h http.Header) {
		if auth != "Bearer " {
			h.Set("Authorization", auth)
		}
	}
	own := http.Client{Transport: defaultTransport()}
	if o.HTTP != nil {
		own = *o.HTTP
	}
	own.Timeout = 0
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &own
	c.opts.Token, c.opts.HTTP = "", nil
	return c, nil
}

// idleConnections is the number of connections to the server that are kept for later requests.
const idleConnections = 32

func defaultTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // the program has replaced it
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = idleConnections
	return t
}

// Close closes idle connections. The client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// String returns the server's URL.
func (c *Client) String() string { return c.base }

// Format prints the server's URL, whatever the verb.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.base) }

// Do makes one request with the client's token and namespace, without repeats, and returns the response whatever its
// status. The path may have a query. A body is sent as application/json unless header, which may be nil, has a
// Content-Type. The caller closes the response's body.
func (c *Client) Do(
	ctx context.Context, method, path string, body io.Reader, header http.Header,
) (*http.Response, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("client: the path %q must begin with /", path)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("client: build the request: %w", err)
	}
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	if c.opts.Namespace != "" && req.Header.Get("Ringback-Namespace") == "" {
		req.Header.Set("Ringback-Namespace", c.opts.Namespace)
	}
	c.authorize(req.Header)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return res, nil
}
