package work

import (
	"encoding/json"
	"fmt"

	"github.com/ringback/ringback/policy"
)

// state is the stored form of a Pacer's progress. Lanes have their key, slot, first and given.
type state struct {
	Free  int64            `json:"free,omitempty"`
	End   int64            `json:"end,omitempty"`
	Floor int64            `json:"floor,omitempty"`
	Taken [][2]int64       `json:"taken,omitempty"`
	Lanes [][4]json.Number `json:"lanes,omitempty"`
}

// MarshalJSON returns the starts that p has given, without its rates: at most 300 KiB.
func (p *pacer) MarshalJSON() ([]byte, error) {
	s := state{Free: p.slots.free, End: p.slots.end, Floor: p.floor}
	for slot, next := range p.slots.taken {
		s.Taken = append(s.Taken, [2]int64{slot, next})
	}
	for key, lane := range p.lanes {
		s.Lanes = append(s.Lanes,
			[4]json.Number{number(key), number(lane.slot), number(lane.first), number(lane.given)})
	}
	return json.Marshal(s)
}

func number[N int64 | uint64](n N) json.Number { return json.Number(fmt.Sprint(n)) }

// restore returns a Pacer as New does, with the starts that another of the same rates had given when it was marshalled.
func restore(rate, laneRate policy.Rate, text []byte) (*pacer, error) {
	p := newPacer(rate, laneRate)
	if len(text) == 0 {
		return p, nil
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("restore a pace: %w", err)
	}
	p.slots.free, p.slots.end, p.floor = s.Free, s.End, s.Floor
	for _, pair := range s.Taken {
		p.slots.taken[pair[0]] = pair[1]
	}
	for _, l := range s.Lanes {
		var key uint64
		var lane laneState
		if _, err := fmt.Sscan(fmt.Sprint(l[0], " ", l[1], " ", l[2], " ", l[3]), &key, &lane.slot, &lane.first,
			&lane.given); err != nil {
			return nil, fmt.Errorf("restore a pace: %w", err)
		}
		p.lanes[key] = lane
	}
	return p, nil
}
