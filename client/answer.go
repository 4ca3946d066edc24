package client

import (
	"encoding/json"

	"github.com/ringback/ringback/client/internal/wire"
)

// Answer is a value that the server has sent. It marshals to the JSON that was sent.
type Answer struct {
	// Raw is the JSON that was sent, with members that this version does not know.
	Raw json.RawMessage `json:"-" wire:"raw"`
}

// MarshalJSON returns Raw; null for a value that the server has not sent.
func (a Answer) MarshalJSON() ([]byte, error) {
	if a.Raw == nil {
		return []byte("null"), nil
	}
	return a.Raw, nil
}

// Text is a body that is sent as text/plain. Without it a string is a JSON string.
type Text = wire.Text

// MaxBody bounds the bodies that are read from an io.Reader: servers accept at most 10 MiB.
const MaxBody = wire.MaxBody
