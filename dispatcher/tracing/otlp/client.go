package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// maxRetries bounds the repetitions of a request. The timeout of the export ends them, too.
	maxRetries = 4
	// retryWait is the wait before the first repetition. It doubles up to maxRetryWait, unless the answer says how long
	// to wait.
	retryWait    = time.Second
	maxRetryWait = 10 * time.Second
)

// client posts spans. It implements otlptrace.Client. That of otlptracehttp imports all of gRPC.
type client struct {
	config *Config
	http   *retryablehttp.Client
	ctx    context.Context //nolint:containedctx // ends with close
	cancel context.CancelFunc
}

func newClient(c *Config) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.TLSClientConfig = c.tls
	again := retryablehttp.NewClient()
	again.RetryMax, again.RetryWaitMin, again.RetryWaitMax = maxRetries, retryWait, maxRetryWait
	again.Logger, again.ErrorHandler = nil, retryablehttp.PassthroughErrorHandler
	again.HTTPClient = &http.Client{
		Transport: transport, Timeout: c.timeout,
		// the headers are secret
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &client{config: c, http: again, ctx: ctx, cancel: cancel}
}

// close ends requests in flight.
func (c *client) close() {
	c.cancel()
	c.http.HTTPClient.CloseIdleConnections()
}

// Start does nothing.
func (*client) Start(context.Context) error { return nil }

// Stop does nothing: Provider.Shutdown calls close.
func (*client) Stop(context.Context) error { return nil }

// UploadTraces sends spans. While the endpoint is not reachable or overloaded it repeats the request, until ctx ends.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	// Its bytes are those of ExportTraceServiceRequest, whose package imports gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	header := c.config.header.Clone()
	header.Set("Content-Type", "application/x-protobuf")
	header.Set("User-Agent", "Ringback")
	if c.config.gzip {
		header.Set("Content-Encoding", "gzip")
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(body) // to memory
		_ = w.Close()
		body = packed.Bytes()
	}
	r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, c.config.Endpoint.String(), body)
	if err != nil {
		return fmt.Errorf("build the request: %w", err)
	}
	r.Header = header
	resp, err := c.http.Do(r)
	if resp != nil {
		_ = resp.Body.Close()
	}
	switch {
	case c.ctx.Err() != nil: // Shutdown reports it
		return nil
	case err != nil:
		return err // it names method and URL
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("POST %s: answered with status %d", c.config.Endpoint.Redacted(), resp.StatusCode)
	}
	return nil
}
