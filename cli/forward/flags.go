package forward

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ringback/ringback/internal/fileread"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/sign"
)

// Flags are the flags of the command.
type Flags struct {
	// Topic whose jobs go to the URL of --to. Repeatable.
	Topic []string `in:"none" sep:"none" placeholder:"TOPIC"`
	// Where the jobs of --topic go: a URL, or a port of this machine.
	To string `in:"none" placeholder:"URL"`
	// Where the jobs of a topic go, or of all pulled topics with this beginning: order.*=http://localhost:3000/orders.
	// The first that matches. Repeatable.
	Route []string `in:"none" sep:"none" placeholder:"PATTERN=URL"`
	// Only this lane, or those with this beginning: customer-*. Repeatable.
	Lane []string `in:"none" sep:"none" placeholder:"LANE"`
	// Send copies of what the server sends, and take no jobs.
	Copy bool `in:"none"`
	// Append the path and the query of the job's own URL.
	KeepPath bool `in:"none"`
	// Requests of a topic at a time, up to 100 (default 8).
	Concurrency int `in:"none" default:"8" placeholder:"N"`
	// Header of each request, for example one that is secret, which the server does not tell; @FILE has one on each
	// line. Repeatable.
	Header []string `short:"H" sep:"none" in:"none" placeholder:"NAME: VALUE"`
	// End after this number of requests, and those of other topics that run beside them. Default: never.
	Count int `in:"none" placeholder:"N"`
	// File with a secret (whsec_…) or key (whsk_…) that signs, instead of the topic's secrets.
	SecretFile string `in:"none" placeholder:"FILE"`
}

// Check reports all flags that are not valid.
func (c *Flags) Check() error { return c.apply(new(Options)) }

// apply sets the options of the flags.
func (c *Flags) apply(o *Options) error {
	o.Lanes, o.Copy, o.KeepPath, o.Concurrency, o.Count = c.Lane, c.Copy, c.KeepPath, c.Concurrency, c.Count
	o.Header = make(http.Header)
	var faults []error
	fault := func(flag string, err error) { faults = append(faults, fmt.Errorf("%s: %w", flag, err)) }
	switch {
	case len(c.Topic) == 0 && len(c.Route) == 0:
		fault("--topic", errors.New("is required, with --to; or pass --route PATTERN=URL"))
	case len(c.Topic) > 0 && c.To == "":
		fault("--to", errors.New("is required with --topic: a URL, or a port of this machine"))
	case len(c.Topic) == 0 && c.To != "":
		fault("--to", errors.New("needs --topic: it is where the jobs of these topics go"))
	case c.To != "":
		to, err := ParseURL(c.To)
		if err != nil {
			fault("--to", err)
		}
		for _, topic := range c.Topic {
			if strings.Contains(topic, "*") {
				fault("--topic", fmt.Errorf("%q is not a topic: pass --route '%s=%s' for several", topic, topic, c.To))
			}
			o.Routes = append(o.Routes, Route{topic, to})
		}
	}
	for _, text := range c.Route {
		r, err := ParseRoute(text)
		if err != nil {
			fault("--route", err)
		}
		o.Routes = append(o.Routes, r)
	}
	for _, lane := range c.Lane {
		if i := strings.IndexByte(lane, '*'); i >= 0 && i < len(lane)-1 {
			fault("--lane", fmt.Errorf("%q is neither a lane nor the beginning of one and a *", lane))
		}
	}
	if c.Concurrency < 1 || c.Concurrency > 100 {
		fault("--concurrency", errors.New("must be 1 to 100"))
	}
	if c.Count < 0 {
		fault("--count", errors.New("must not be negative"))
	}
	for _, line := range c.Header {
		if err := addHeader(o.Header, line); err != nil {
			fault("--header", err)
		}
	}
	if c.SecretFile != "" {
		signer, err := readSigner(c.SecretFile)
		if err != nil {
			fault("--secret-file", err)
		}
		o.Signer = signer
	}
	return errors.Join(faults...)
}

// addHeader adds the field of a line NAME: VALUE, or those of the lines of a file.
func addHeader(h http.Header, line string) error {
	file, ok := strings.CutPrefix(line, "@")
	if !ok {
		return addField(h, line)
	}
	text, _, err := fileread.ReadSecret(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := addField(h, line); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// addField adds the field of a line. No error has the line, which may be secret.
func addField(h http.Header, line string) error {
	name, value, ok := strings.Cut(line, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case !ok:
		return errors.New("a header must be NAME: VALUE, or @FILE with such lines")
	case !job.IsFieldName(name):
		return errors.New("what is before the colon is not the name of a header")
	case !job.IsFieldValue(value):
		return fmt.Errorf("%s has a value that HTTP cannot carry", name)
	}
	h.Add(name, value)
	return nil
}

// readSigner returns the signer of a file with a secret.
func readSigner(file string) (*sign.Signer, error) {
	text, _, err := fileread.ReadSecret(file)
	if err != nil {
		return nil, err
	}
	secret, err := sign.ParseSecret(text)
	if err != nil {
		return nil, err
	}
	return sign.NewSigner(secret)
}
