package client

import "encoding/json"

// Headers are headers of requests to receivers: values by name. A name without values is removed, where headers are
// changed.
type Headers map[string][]string

// MarshalJSON returns a value or a list of values by name.
func (h Headers) MarshalJSON() ([]byte, error) {
	all := make(map[string]any, len(h))
	for name, values := range h {
		switch len(values) {
		case 0:
			all[name] = nil
		case 1:
			all[name] = values[0]
		default:
			all[name] = values
		}
	}
	return json.Marshal(all) // it is the whole of it
}

// UnmarshalJSON reads a value or a list of values by name.
func (h *Headers) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err // encoding/json names the member
	}
	*h = make(Headers, len(all))
	for name, raw := range all {
		values := make([]string, 1)
		if err := json.Unmarshal(raw, &values[0]); err != nil {
			if err := json.Unmarshal(raw, &values); err != nil {
				return err // encoding/json names the member
			}
		}
		if string(raw) == "null" {
			values = nil
		}
		(*h)[name] = values
	}
	return nil
}
