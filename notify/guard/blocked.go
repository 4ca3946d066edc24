package guard

import "fmt"

// ownAPI completes "it is …" for what nothing admits.
const ownAPI = "this service's own API"

// A BlockedError says that an address may not be called, by which rule, and what would admit it; or which entry denies
// it.
type BlockedError struct {
	// Target is the address, or the name that stands for one.
	Target string
	// Entry is what denies it: a network or a host of --deny-targets; empty: nothing does.
	Entry string
	// Rule names what it is: "a private address (RFC 1918)". Empty with an Entry.
	Rule string
	// Option is what would admit it; empty: nothing does.
	Option string
}

func (e *BlockedError) Error() string {
	switch {
	case e.Entry != "":
		return fmt.Sprintf("%s may not be called: --deny-targets %s denies it", e.Target, e.Entry)
	case e.Option == "":
		return fmt.Sprintf("%s may not be called: it is %s, which nothing admits", e.Target, e.Rule)
	default:
		return fmt.Sprintf("%s may not be called: it is %s, which only %s admits", e.Target, e.Rule, e.Option)
	}
}
