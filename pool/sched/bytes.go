package sched

import "github.com/ringback/ringback/internal/capacity"

// The budget of bytes is for bodies that are not sent yet: a receiver that has taken its request, and hangs, holds none
// of it. Topics share it by capacity.Threshold, as they share attempts. A topic counts as two: its lanes that answer
// quickly, and the others.
//
// The length of a body is known when it is claimed. So a topic is claimed from while it holds no more than half of its
// threshold, and a claim may bring as much as the other half. Only the first job of a claim may be longer. It is taken
// if it fits below the threshold, or if its topic holds nothing and the one place beyond the budget is free. Otherwise
// it is released, and its lane waits until it would be taken.

// claimShare is what part of the budget a claim may bring at most.
const claimShare = 8

// byteBudget counts bytes of bodies.
type byteBudget struct {
	total     int
	oversized int // of the job in the place beyond the budget, which is not in total; zero: the place is free
}

// byteThreshold returns how many bytes a topic may hold.
func (s *Scheduler) byteThreshold() int {
	return int(capacity.Threshold(s.opts.MaxBytes-s.bytes.total, s.opts.MaxBytes, capacity.AttemptBytesWeight))
}

// claimBytes returns how many bytes a claim may bring.
func (s *Scheduler) claimBytes() int { return min(s.byteThreshold()/2, s.opts.MaxBytes/claimShare) }

// reserveBytes counts what a claim may bring until its answer is there.
func (sh *Shard) reserveBytes(bytes int) {
	sh.reservedBytes = bytes
	sh.s.bytes.total += bytes
}

// RenewBytes replaces the claim's reservation by what a claim may bring now, and returns it.
func (sh *Shard) RenewBytes() int {
	sh.releaseBytes()
	sh.reserveBytes(sh.s.claimBytes())
	return sh.reservedBytes
}

func (sh *Shard) releaseBytes() {
	sh.s.bytes.total -= sh.reservedBytes
	sh.reservedBytes = 0
}

// mayAskForBytes reports whether lanes of a topic may be claimed from.
func (s *Scheduler) mayAskForBytes(t *Topic, of health) bool {
	return *t.unsentBytes(of) <= s.byteThreshold()/2
}

// unsentBytes returns the count for lanes of a health.
func (t *Topic) unsentBytes(of health) *int {
	if of == healthOK {
		return &t.okBytes
	}
	return &t.bytes
}

// bodyFits reports whether a body may be taken that is longer than what a claim may bring, and whether it takes the
// place beyond the budget.
func (s *Scheduler) bodyFits(l *Lane, body int) (ok, oversized bool) {
	held := *l.topic.unsentBytes(l.health)
	switch free := s.opts.MaxBytes - s.bytes.total; {
	case body <= free/2 && held+body <= s.byteThreshold():
		return true, false
	case held == 0 && s.bytes.oversized == 0:
		return true, true
	}
	return false, false
}

// takeBytes counts the body of a claimed job, unless it does not fit. The first job of a claim may be of any length.
func (s *Scheduler) takeBytes(j *Job, room int, first bool) bool {
	l, oversized := j.Lane, false
	if first && j.Body > room {
		var ok bool
		if ok, oversized = s.bodyFits(l, j.Body); !ok {
			l.nextBody = j.Body
			return false
		}
	}
	l.nextBody = 0
	j.bytes, j.oversized = j.Body, oversized
	l.addBytes(j.bytes)
	if oversized {
		s.bytes.oversized = j.bytes
	} else {
		s.bytes.total += j.bytes
	}
	return true
}

// addBytes counts bytes of a lane's bodies.
func (l *Lane) addBytes(n int) {
	l.bytes += n
	*l.topic.unsentBytes(l.health) += n
}

// freeBytes takes the body of a job out of the count.
func (s *Scheduler) freeBytes(j *Job) {
	j.Lane.addBytes(-j.bytes)
	if j.oversized {
		s.bytes.oversized = 0
	} else {
		s.bytes.total -= j.bytes
	}
	j.bytes, j.oversized = 0, false
}

// Sent notes that the body of a job is sent and not kept. Others may have waited for its room.
func (s *Scheduler) Sent(j *Job) {
	s.freeBytes(j)
	s.wakeForBytes()
}

// wakeForBytes wakes all shards when a lane waits for room for a body.
func (s *Scheduler) wakeForBytes() {
	if s.awaitingBytes {
		s.awaitingBytes = false
		s.wakeAll()
	}
}
