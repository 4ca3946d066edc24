package filter

import (
	"encoding/json"
	"fmt"

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
		client.Where

		State texts `json:"state"`
		Label texts `json:"label"`
		IDs   int   `json:"ids_count"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &where); err != nil {
			return Selection{}, fmt.Errorf("read the selection of bulk work: %w", err)
		}
	}
	s := Selection{Filter: Filter(where.Where), IDs: where.IDs}
	s.State, s.Label, s.All = statesOf(where.State), where.Label, false
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
