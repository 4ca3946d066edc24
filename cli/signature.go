package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/internal/fileread"
	"github.com/ringback/ringback/sign"
)

// signatureCommand is ringback signature.
type signatureCommand struct {
	// Print the headers that sign a request.
	//
	//	ringback signature sign --secret-file secret.txt -d @body.json
	Sign signCommand `cmd:""`
	// Verify the signature of a request, as a receiver does. Exits 1 if it is not valid.
	//
	//	ringback signature verify --secret-file secret.txt -d @body.json -H 'webhook-id: close-4711' \
	//		-H 'webhook-timestamp: 1893456000' -H 'webhook-signature: v1,…'
	Verify verifyCommand `cmd:""`
}

// signedRequest are the flags that both share.
type signedRequest struct {
	// File with the secret (whsec_…) or the key (whsk_…; to verify also whpk_…).
	SecretFile string `required:"" placeholder:"FILE"`
	// Body as it is sent, byte for byte; @FILE is the content of a file, @- the standard input.
	Data string `required:"" short:"d" placeholder:"TEXT"`
}

// signCommand is ringback signature sign.
type signCommand struct {
	signedRequest
	// The webhook-id. Default: a random one.
	ID string `name:"id" placeholder:"ID"`
	// The time of the signature. Default: now.
	At string `placeholder:"TIME"`
	formatFlags
}

// RunCommand prints the headers.
func (c *signCommand) RunCommand(p *output.Printer, e *Environment) error {
	text, _, err := fileread.ReadSecret(c.SecretFile)
	if err != nil {
		return &usageError{Err: err}
	}
	secret, err := sign.ParseSecret(text)
	if err != nil {
		return usagef("--secret-file: %w", err)
	}
	signer, err := sign.NewSigner(secret)
	if err != nil {
		return err
	}
	body, err := e.read(c.Data)
	if err != nil {
		return err
	}
	at, err := timeOr(c.At, "--at")
	if err != nil {
		return err
	}
	id := c.ID
	if id == "" {
		id = strings.ToLower(rand.Text())
	}
	if strings.Contains(id, ".") {
		return usagef("--id: must not contain a full stop")
	}
	headers := [][2]string{
		{sign.HeaderID, id},
		{sign.HeaderTimestamp, strconv.FormatInt(at.Unix(), 10)},
		{sign.HeaderSignature, signer.Sign(id, at, body)},
	}
	var lines strings.Builder
	row := make(map[string]string)
	for _, h := range headers {
		name := strings.ToLower(h[0])
		row[name] = h[1]
		fmt.Fprintf(&lines, "%s: %s\n", name, h[1])
	}
	if c.Output == "" && c.JQ == "" || p.ForPeople() {
		_, err := io.WriteString(e.Stdout, lines.String())
		return err
	}
	return p.One(row)
}

// timeOr reads a time; empty: now.
func timeOr(text, flag string) (time.Time, error) {
	if text == "" {
		return time.Now(), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usagef("%s: %q is not a time such as 2030-01-31T08:00:00Z", flag, text)
	}
	return t, nil
}

// verifyCommand is ringback signature verify.
type verifyCommand struct {
	signedRequest
	// Header of the request. Repeatable; webhook-id, webhook-timestamp and webhook-signature are required.
	Header []string `short:"H" required:"" sep:"none" placeholder:"NAME: VALUE"`
	// Largest difference of the timestamp to now (default 5m).
	Tolerance duration `default:"5m" placeholder:"DURATION"`
	// Time at which the request arrived. Default: now.
	Now string `placeholder:"TIME"`
}

// RunCommand verifies the signature.
func (c *verifyCommand) RunCommand(e *Environment) error {
	text, _, err := fileread.ReadSecret(c.SecretFile)
	if err != nil {
		return &usageError{Err: err}
	}
	verifier, err := sign.NewVerifier(strings.Fields(text)...)
	if err != nil {
		return usagef("--secret-file: %w", err)
	}
	verifier.Tolerance = c.Tolerance.Duration
	body, err := e.read(c.Data)
	if err != nil {
		return err
	}
	now, err := timeOr(c.Now, "--now")
	if err != nil {
		return err
	}
	header, err := headersOf(c.Header)
	if err != nil {
		return err
	}
	if err := verifier.Verify(header, body, now); err != nil {
		hint := verifyHint
		if errors.Is(err, sign.ErrTimestamp) {
			hint = "--now says when the request arrived, --tolerance how far from then its timestamp may be"
		}
		return &ExitError{Code: failed, Text: fmt.Sprintf("not valid: %s\n%s", err, hint)}
	}
	_, err = fmt.Fprintln(e.Stdout, "valid")
	return err
}

// verifyHint is the usual cause.
const verifyHint = "the body must be the bytes that were received, and the secret that of the job's lane, else of " +
	"its topic"
