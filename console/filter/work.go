package filter

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
)

// Selection is what bulk work selects: jobs that match a filter, or a number of jobs by their ids.
type Selection struct {
	Filter

	IDs int // how many ids; zero: the filter selects
}

// ParseWhere reads which jobs bulk work selects, as the API shows it in where.
func ParseWhere(raw json.RawMessage) (Selection, error) {
	var where struct {
		State, Label              texts
		Topic, Lane, Kind, Reason string
		Status                    int
		IDPrefix                  string    `json:"id_prefix"`
		CreatedAfter              time.Time `json:"created_after"`
		CreatedBefore             time.Time `json:"created_before"`
		DueAfter                  time.Time `json:"due_after"`
		DueBefore                 time.Time `json:"due_before"`
		EndedAfter                time.Time `json:"ended_after"`
		EndedBefore               time.Time `json:"ended_before"`
		IDs                       int       `json:"ids_count"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &where); err != nil {
			return Selection{}, fmt.Errorf("read the selection of bulk work: %w", err)
		}
	}
	s := Selection{IDs: where.IDs, Filter: Filter{
		Topic: where.Topic, Lane: where.Lane, Kind: where.Kind, Labels: where.Label, Reason: where.Reason,
		Status: where.Status, IDPrefix: where.IDPrefix, Created: Range{where.CreatedAfter, where.CreatedBefore},
		Due:   Range{where.DueAfter, where.DueBefore},
		Ended: Range{where.EndedAfter, where.EndedBefore},
	}}
	for _, state := range distinct(strings.Split(strings.Join(where.State, ","), ",")) {
		s.States = append(s.States, client.State(state))
	}
	return s, nil
}

// texts reads a string, or an array of strings.
type texts []string

// UnmarshalJSON reads a string, or an array of strings.
func (t *texts) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*t = texts{""}
		return json.Unmarshal(data, &(*t)[0])
	}
	return json.Unmarshal(data, (*[]string)(t))
}
