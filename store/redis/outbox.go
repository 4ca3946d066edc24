package redis

import (
	"encoding/json"
	"fmt"

	"github.com/ringback/ringback/store"
)

// A parcel is an outbox entry as it is kept. The version tells an older process that it cannot read it.
type parcel struct {
	Version int          `json:"version"`
	Entry   store.NewJob `json:"entry"`
}

const parcelVersion = 1

func packEntry(e *store.NewJob) ([]byte, error) {
	text, err := json.Marshal(parcel{parcelVersion, *e})
	if err != nil {
		return nil, fmt.Errorf("write an outbox entry: %w", err)
	}
	return text, nil
}

func unpackEntry(text string) (store.NewJob, error) {
	var p parcel
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return store.NewJob{}, fmt.Errorf("read an outbox entry: %w", err)
	}
	if p.Version != parcelVersion {
		return store.NewJob{}, fmt.Errorf("read an outbox entry: it has form %d, which a newer version wrote", p.Version)
	}
	return p.Entry, nil
}
