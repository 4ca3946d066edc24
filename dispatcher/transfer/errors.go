package transfer

import (
	"fmt"
	"strings"

	"github.com/ringback/ringback/store"
)

// A ConflictError is the error of something that is stored otherwise.
type ConflictError struct {
	Line int
	What string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("line %d: the store has another %s: import into an empty store, or remove it there", e.Line,
		e.What)
}

// A MissingError is the error of an import after which the stores have fewer jobs than the file.
type MissingError struct{ Jobs int64 }

func (e *MissingError) Error() string {
	return fmt.Sprintf("%d jobs of the file are not in the stores: see the ledger, and begin with an empty store; or "+
		"keep what they have with ringback import --accept", e.Jobs)
}

// SomeJobs is a number of jobs, with the names and lines of some.
type SomeJobs struct {
	Jobs int64
	Some []string
}

// maxNames bounds the jobs that an error names.
const maxNames = 20

func (s *SomeJobs) add(n *numbered[store.Record]) {
	if s.Jobs++; len(s.Some) < maxNames {
		s.Some = append(s.Some, fmt.Sprintf("%s/%s (line %d)", n.value.Namespace, n.value.ID, n.line))
	}
}

// list names the first of the jobs.
func (s *SomeJobs) list() string {
	text := strings.Join(s.Some, ", ")
	if more := s.Jobs - int64(len(s.Some)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// A LeftOutError is the error of an import that is complete but for jobs whose ids other jobs have.
type LeftOutError struct{ SomeJobs }

func (e *LeftOutError) Error() string {
	return fmt.Sprintf("%d jobs were left out, as the stores have other jobs with their ids: %s", e.Jobs, e.list())
}

// A StaleError is the error of an import after which jobs are not as in the file: another import has stored them, and
// they have been changed, attempted or removed since.
type StaleError struct{ SomeJobs }

func (e *StaleError) Error() string {
	return fmt.Sprintf("%d jobs were stored before, with other progress than in the file: %s: begin with an empty "+
		"store; or keep what the stores have with ringback import --accept", e.Jobs, e.list())
}
