package table

import "encoding/json"

// A Mark is one job in a row of the table leases: its lane and its number.
type Mark struct{ Q, N int64 }

// ParseMarks decodes the column jobs of the table leases.
func ParseMarks(column string) ([]Mark, error) {
	var raw [][2]int64
	if err := json.Unmarshal([]byte(column), &raw); err != nil {
		return nil, err
	}
	marks := make([]Mark, len(raw))
	for i, r := range raw {
		marks[i] = Mark{Q: r[0], N: r[1]}
	}
	return marks, nil
}
