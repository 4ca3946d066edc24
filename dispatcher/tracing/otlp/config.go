package otlp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/ringback/ringback/internal/fileread"
)

// Config says where spans are sent, and how.
type Config struct {
	// Endpoint is the URL to which they are sent.
	Endpoint *url.URL
	// From is the variable that sets it.
	From string

	header   http.Header
	timeout  time.Duration // of a request
	gzip     bool
	tls      *tls.Config
	queue    int // spans
	resource *resource.Resource
}

// The variables that turn the exporter on.
const (
	endpointVariable       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpointVariable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

// FromEnvironment reads the standard variables; nil: spans are not exported. Errors name the variables, all of them.
func FromEnvironment(version string) (*Config, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil // off, as documented
	}
	c, v := &Config{From: tracesEndpointVariable}, variables{}
	endpoint, path := os.Getenv(tracesEndpointVariable), "/"
	if endpoint == "" {
		c.From, path = endpointVariable, "/v1/traces"
		if endpoint = os.Getenv(endpointVariable); endpoint == "" {
			return nil, nil // off, as documented
		}
	}
	var err error
	c.Endpoint, err = url.Parse(endpoint)
	switch {
	case err != nil || c.Endpoint.Scheme != "http" && c.Endpoint.Scheme != "https" || c.Endpoint.Host == "":
		v.add(c.From, "must be a URL with http:// or https://")
	case c.From == endpointVariable:
		c.Endpoint = c.Endpoint.JoinPath(path)
	case c.Endpoint.Path == "":
		c.Endpoint.Path = path
	}
	v.oneOf("OTEL_TRACES_EXPORTER", os.Getenv("OTEL_TRACES_EXPORTER"), "otlp", "none")
	name, protocol := lookup("PROTOCOL")
	v.oneOf(name, protocol, "http/protobuf")
	name, compression := lookup("COMPRESSION")
	v.oneOf(name, compression, "gzip", "none")
	c.gzip = compression == "gzip"
	name, timeout := lookup("TIMEOUT")
	c.timeout = time.Duration(v.number(name, timeout, 10_000)) * time.Millisecond
	for _, name := range []string{
		"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
	} {
		v.number(name, os.Getenv(name), 1) // package sdk/trace reads it
	}
	c.queue = v.number("OTEL_BSP_MAX_QUEUE_SIZE", os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE"), sdktrace.DefaultMaxQueueSize)
	v.sampler()
	c.header = v.header()
	c.tls = v.tls()
	c.resource, err = resource.New(context.Background(),
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "ringback"),
			attribute.String("service.version", version)),
		resource.WithFromEnv()) // takes precedence
	if err != nil {
		v.add("OTEL_RESOURCE_ATTRIBUTES", "must be NAME=VALUE,…")
	}
	return c, errors.Join(v.errs...)
}

// lookup returns a setting of the exporter, and the name of its variable: that for traces, or else that for all
// signals.
func lookup(setting string) (name, value string) {
	name = "OTEL_EXPORTER_OTLP_TRACES_" + setting
	if value = os.Getenv(name); value == "" {
		name = "OTEL_EXPORTER_OTLP_" + setting
		value = os.Getenv(name)
	}
	return name, strings.TrimSpace(value)
}

// variables reads variables, and collects errors.
type variables struct{ errs []error }

func (v *variables) add(name, rule string) { v.errs = append(v.errs, fmt.Errorf("%s %s", name, rule)) }

// oneOf checks a value that may be empty.
func (v *variables) oneOf(name, value string, allowed ...string) {
	if value != "" && !slices.Contains(allowed, value) {
		v.add(name, "must be "+strings.Join(allowed, " or "))
	}
}

// number reads a positive number; preset: it is not set.
func (v *variables) number(name, value string, preset int) int {
	if value == "" {
		return preset
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > math.MaxInt32 {
		v.add(name, "must be a whole number from 1")
		return preset
	}
	return n
}

// sampler checks the sampler, which package sdk/trace reads: it would ignore one that is not valid.
func (v *variables) sampler() {
	const name, arg = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	value := strings.TrimSpace(os.Getenv(name))
	v.oneOf(name, value, "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
		"parentbased_traceidratio")
	if text := strings.TrimSpace(os.Getenv(arg)); strings.HasSuffix(value, "traceidratio") && text != "" {
		if ratio, err := strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			v.add(arg, "must be a number from 0 to 1")
		}
	}
}

// header reads the headers of requests: NAME=VALUE, separated by commas, with %XX for other characters.
func (v *variables) header() http.Header {
	name, text := lookup("HEADERS")
	h := make(http.Header)
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			v.add(name, "must be NAME=VALUE,…") // without the value, which may be secret
			break
		}
		h.Set(key, value)
	}
	return h
}

// tls reads the authorities that the endpoint's certificate may be of, and the certificate to show it; nil: the
// system's, and none.
func (v *variables) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if name, file := lookup("CERTIFICATE"); file != "" {
		text, err := fileread.ReadPEM(file)
		if c.RootCAs = x509.NewCertPool(); err != nil {
			v.add(name, err.Error())
		} else if !c.RootCAs.AppendCertsFromPEM(text) {
			v.add(name, file+" has no certificate in PEM")
		}
	}
	name, file := lookup("CLIENT_CERTIFICATE")
	_, key := lookup("CLIENT_KEY")
	if file == "" && key == "" {
		return c
	}
	pair, err := fileread.KeyPair(file, key)
	if err != nil {
		v.add(name, "and …_CLIENT_KEY: "+err.Error())
	}
	c.Certificates = []tls.Certificate{pair}
	return c
}
