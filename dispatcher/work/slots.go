package work

// slots are numbered from 0, each taken once.
type slots struct {
	free  int64           // all slots before it are taken
	end   int64           // no slot from here on is taken
	taken map[int64]int64 // taken slots after free, each with a later slot; all between are taken
}

// take takes the first free slot at or after one.
func (s *slots) take(from int64) int64 {
	slot := max(from, s.free)
	for next, ok := s.taken[slot]; ok; next, ok = s.taken[slot] {
		slot = next
	}
	for at := max(from, s.free); at < slot; {
		at, s.taken[at] = s.taken[at], slot+1
	}
	s.end = max(s.end, slot+1)
	if slot > s.free {
		s.taken[slot] = slot + 1
		return slot
	}
	s.free++
	for s.taken[s.free] > 0 {
		delete(s.taken, s.free)
		s.free++
	}
	return slot
}

// forget takes all slots before end.
func (s *slots) forget() {
	s.free = s.end
	clear(s.taken)
}
