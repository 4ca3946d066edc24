package cli

import (
	"context"
	"encoding/json"
	"strings"
)

// apiCommand is ringback api.
type apiCommand struct {
	// GET, POST, PUT, PATCH or DELETE.
	Method string `arg:""`
	// Path with the query, such as /v1/jobs?state=dead.
	Path string `arg:""`
	// Body; @FILE is the content of a file, @- the standard input.
	Data string `short:"d" placeholder:"TEXT"`
	// Header, such as If-Match. Repeatable.
	Header []string `short:"H" sep:"none" placeholder:"NAME: VALUE"`
	connection
}

// RunCommand makes the request and prints the answer as it is, or as --output says if it is JSON.
func (c *apiCommand) RunCommand(ctx context.Context, s *session) error {
	if !strings.HasPrefix(c.Path, "/") {
		return usagef("the path must begin with /, such as /v1/jobs")
	}
	header, err := headersOf(c.Header)
	if err != nil {
		return err
	}
	r := &apiRequest{Method: strings.ToUpper(c.Method), Path: c.Path, Header: header}
	if c.Data != "" {
		data, err := s.read(c.Data)
		if err != nil {
			return err
		}
		r.Raw = data
	}
	answer, err := s.do(ctx, r)
	if err != nil {
		return err
	}
	if !json.Valid(answer) {
		return s.out.Raw(string(answer))
	}
	if c.Output == "" && c.JQ == "" {
		return s.out.Document(answer)
	}
	return s.out.One(answer)
}
