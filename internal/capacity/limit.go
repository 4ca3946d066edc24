package capacity

import (
	"fmt"
	"strconv"
)

// namespaceWeight is the weight of a namespace, and of a store, in Threshold: alone it gets three quarters.
const namespaceWeight = 12

// Limit is a bound of a process, a row of Table.
type Limit struct {
	// Name is what is bounded, a noun in the plural.
	Name string
	// Whole is what all clients hold at most, in units of Name unless Bytes is set.
	Whole int
	Bytes bool
	// Depends says what else bounds Whole, for the docs.
	Depends string
	// PerStore is set if each store of a process has as much.
	PerStore bool
	// Weight is that of one holder in Threshold; zero: nothing is shared, because those that hold it are not known.
	Weight int
	// ByTopic is set if topics have shares, not namespaces.
	ByTopic bool
	// Beyond says what happens to a request beyond it, for the docs.
	Beyond string
	// Advice says what the client of such a request can do.
	Advice string
}

// Share returns what one holder gets if the others hold nothing; zero: nothing is shared.
func (l *Limit) Share() int { return share(l.Whole, l.Weight) }

func share(whole, weight int) int { return Allowance(0, whole, whole, weight) }

// FullError is the error of what exceeds a bound of the process, or a share of it.
type FullError struct {
	*Limit

	whole, held int
	of          key // whose share; without a name: all is in use
}

// Error says what is full, and what to do.
func (e *FullError) Error() string {
	count := func(n int) string {
		if e.Bytes {
			return strconv.Itoa(n>>10) + " KiB"
		}
		return strconv.Itoa(n)
	}
	who := "the namespace"
	if e.of.ofStore {
		who = "the store of the namespace, which others must not wait for,"
	}
	if e.of.name == "" {
		return fmt.Sprintf("too many %s: this process has room for %s; %s", e.Name, count(e.whole), e.Advice)
	}
	return fmt.Sprintf("too many %s: %s holds its share of %s; this process leaves the rest of %s to others; %s",
		e.Name, who, count(e.held), count(e.whole), e.Advice)
}
