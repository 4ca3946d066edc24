package conn

import (
	"hash/maphash"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/ringback/ringback/job"
)

// Requests use connections of the current generation only, so that they follow a host whose address changes, however
// busy its connections are. Connections of earlier generations finish their requests and reach idleTimeout.
const (
	// generationTime is the duration of a generation. Those of different hosts and queues begin at different times.
	generationTime = 90 * time.Second
	// generationJitter is the time in which the requests of a host and queue change over, so that a receiver does not
	// get all its connections anew at once.
	generationJitter = 30 * time.Second
	// maxAge is the age at which a connection gets its last request, at most.
	maxAge = generationTime + generationJitter
)

// A generation is the number of a generation of connections, from zero.
type generation int64

// generation returns the generation of the connections that a request may use, of a host and port and of the queue that
// has connections of its own; the zero queue: all queues share them. It is random while generations change.
func (t *Transport) generation(addr string, queue job.Queue) generation {
	ahead := maphash.Comparable(labelSeed, struct {
		addr  string
		queue job.Queue
	}{addr, queue}) % uint64(generationJitter)
	age := time.Since(t.made) + time.Duration(ahead)
	return generation((age + rand.N(generationJitter)) / generationTime)
}

// label returns the end of the label of connections of the generation.
func (g generation) label() string { return "-" + strconv.FormatInt(int64(g), 10) }
