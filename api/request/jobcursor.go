package request

import (
	"encoding/base64"
	"encoding/json"
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

// cursorVersion changes when positions or filters change their meaning.
const cursorVersion = 1

// jobCursor is the content of a cursor of a list of jobs: a position, and the list that has it.
type jobCursor struct {
	Version int    `json:"v"`
	List    string `json:"f"` // fingerprint of the filter
	store.Position
}

// NextCursor returns the cursor of the page of a list of jobs that begins at a position.
func NextCursor(f *store.Filter, at store.Position) (string, error) {
	list, err := fingerprint(f)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(jobCursor{Version: cursorVersion, List: list, Position: at})
	return base64.RawURLEncoding.EncodeToString(text), err
}

// fingerprint returns a hash of the fields that make the list, whatever the pages are.
func fingerprint(f *store.Filter) (string, error) {
	list := *f
	list.After, list.Limit, list.ScanLimit = store.Position{}, 0, 0
	hash := fnv.New64a()
	err := json.NewEncoder(hash).Encode(list)
	return strconv.FormatUint(hash.Sum64(), 36), err
}

// jobCursor reads the position of a cursor.
func (q *Query) jobCursor(text string, f *store.Filter) {
	var c jobCursor
	raw, err := base64.RawURLEncoding.DecodeString(text)
	list, failed := fingerprint(f)
	switch {
	case len(text) > maxCursor || err != nil || json.Unmarshal(raw, &c) != nil || c.Version != cursorVersion || !isPosition(c.Position):
		q.AddError("?cursor", "must be the next_cursor of an earlier answer")
	case failed != nil || c.List != list:
		q.AddError("?cursor", "is of another list: repeat its other parameters unchanged, but for limit, or leave cursor out")
	default:
		f.After = c.Position
	}
}

// isPosition reports whether a position is within the bounds of engines.
func isPosition(p store.Position) bool {
	return len(p.Topic) <= 64 && len(p.Lane) <= 128 && len(p.Tie) <= maxTie && p.At >= 0 && p.At <= maxAt &&
		p.Shard >= 0 && p.Shard < job.MaxShards && (!p.Ended || p.Topic == "" && p.Lane == "")
}
