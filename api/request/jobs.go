package request

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"hash/fnv"
	"strconv"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Bounds of cursors of lists of jobs.
const (
	maxCursor = 1024    // characters
	maxTie    = 256     // bytes of a position's Tie
	maxAt     = 1 << 52 // of a position, in Unix milliseconds
)

// version changes when positions or filters change their meaning.
const version = 1

// errOtherList is the error of a cursor of another list of jobs.
var errOtherList = errors.New("is of another list: repeat its other parameters unchanged, but for limit, or leave " +
	"cursor out")

// ofJobs is the content of a cursor of a list of jobs: a position, and the list that has it.
type ofJobs struct {
	Version int    `json:"v"`
	List    string `json:"f"` // fingerprint of the filter
	store.Position
}

// EncodeJobsCursor returns the cursor of the page of a list of jobs that begins at a position.
func EncodeJobsCursor(f *store.Filter, at store.Position) (string, error) {
	list, err := fingerprint(f)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(ofJobs{Version: version, List: list, Position: at})
	return base64.RawURLEncoding.EncodeToString(text), err
}

// DecodeJobsCursor returns the position in a cursor of a list of jobs. Its errors say to clients what is wrong.
func DecodeJobsCursor(text string, f *store.Filter) (store.Position, error) {
	var c ofJobs
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if len(text) > maxCursor || err != nil || json.Unmarshal(raw, &c) != nil || c.Version != version ||
		!isPosition(c.Position) {
		return store.Position{}, ErrInvalidCursor
	}
	if list, err := fingerprint(f); err != nil || c.List != list {
		return store.Position{}, errOtherList
	}
	return c.Position, nil
}

// fingerprint returns a hash of the fields that make the list, whatever the pages are.
func fingerprint(f *store.Filter) (string, error) {
	list := *f
	list.After, list.Limit, list.ScanLimit = store.Position{}, 0, 0
	hash := fnv.New64a()
	err := json.NewEncoder(hash).Encode(list)
	return strconv.FormatUint(hash.Sum64(), 36), err
}

// isPosition reports whether a position is within the bounds of engines.
func isPosition(p store.Position) bool {
	return len(p.Topic) <= 64 && len(p.Lane) <= 128 && len(p.Tie) <= maxTie && p.At >= 0 && p.At <= maxAt &&
		p.Shard >= 0 && p.Shard < job.MaxShards && (!p.Ended || p.Topic == "" && p.Lane == "")
}
