package transfer

import (
	"fmt"
	"strings"
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

// A LeftOutError is the error of an import that is complete but for jobs whose ids other jobs have.
type LeftOutError struct {
	Jobs int64
	Some []string // of the jobs, with their lines
}

func (e *LeftOutError) Error() string {
	return fmt.Sprintf("%d jobs were left out, as the stores have other jobs with their ids: %s", e.Jobs,
		nameSome(e.Jobs, e.Some))
}

// A StaleError is the error of an import after which jobs are not as in the file: another import has stored them, and
// they have been changed, attempted or removed since.
type StaleError struct {
	Jobs int64
	Some []string // of the jobs, with their lines
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%d jobs were stored before, with other progress than in the file: %s: begin with an empty "+
		"store; or keep what the stores have with ringback import --accept",
		e.Jobs, nameSome(e.Jobs, e.Some))
}

// nameSome lists the first of n jobs.
func nameSome(n int64, some []string) string {
	text := strings.Join(some, ", ")
	if int64(len(some)) < n {
		text += fmt.Sprintf(" and %d more", n-int64(len(some)))
	}
	return text
}
