package memory

import (
	"strconv"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A Batch is a row of the table leases: jobs that were claimed together. A job's own row does not change when it is
// claimed, nor any index: a claim writes a row for all its jobs, a settlement writes the rows again that its jobs were
// in, so that both touch few pages, wherever the jobs lie.
type Batch struct {
	Number  int64
	Claimed int64 // by the wall clock
	Jobs    []*Lease
	Marks   []table.Mark // what Open read of them
	Stored  bool         // as the database has it at the end of the last transaction
	SavedIn uint64       // the transaction that changed it last
}

// BatchJobs bounds a batch: a settlement of one job writes all that is left of it.
const BatchJobs = 128

// add and drop keep a lease's index in its batch, whose order has no meaning.
func (b *Batch) add(h *Lease) {
	h.index = len(b.Jobs)
	b.Jobs = append(b.Jobs, h)
}

func (b *Batch) drop(h *Lease) {
	last := len(b.Jobs) - 1
	b.Jobs[h.index] = b.Jobs[last]
	b.Jobs[h.index].index = h.index
	b.Jobs[last] = nil
	b.Jobs = b.Jobs[:last]
}

// AddLease adds a lease, whose batch is set.
func (m *State) AddLease(h *Lease) {
	m.Leases[h.Ref], m.LeaseByNumber[h.N] = h, h
	h.Batch.add(h)
	h.Queue.Owners.add(h.Token.Owner(), 1)
}

// RemoveLease removes a lease.
func (m *State) RemoveLease(h *Lease) {
	delete(m.Leases, h.Ref)
	delete(m.LeaseByNumber, h.N)
	h.Batch.drop(h)
	h.Queue.Owners.add(h.Token.Owner(), -1)
}

// Encode returns the column of a batch: its marks, as JSON. A number is between a comma and a bracket (table.IsLeased).
func (b *Batch) Encode() string {
	text := make([]byte, 0, 24*len(b.Jobs)+2)
	text = append(text, '[')
	for i, h := range b.Jobs {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '[')
		text = strconv.AppendInt(text, h.Queue.Id, 10)
		text = append(text, ',')
		text = strconv.AppendInt(text, h.N, 10)
		text = append(text, ']')
	}
	return string(append(text, ']'))
}

// A Lease is the lease of one claimed job, with what a settlement needs of the job.
type Lease struct {
	Ref          job.Ref
	N            int64
	Queue        *Queue
	Token        store.Token
	Claimed      int64 // by the wall clock
	Begun        int64 // the same, monotonic
	Deadline     int64 // monotonic
	Rated, Probe bool  // as in store.ClaimedJob
	Slot         Slot
	Batch        *Batch
	index        int // in the batch
	table.Progress
}
