package guard

import "fmt"

// ownAPI completes "it is …".
const ownAPI = "this service's own API"

// A BlockedError is a refused address with the rule that refuses it and the option that would admit it, or the entry
// that denies it.
type BlockedError struct {
	// Target is the address or name.
	Target string
	// Entry is the network or host of --deny-targets that denies it; empty: none.
	Entry string
	// Rule describes the address: "a private address (RFC 1918)". Empty with an Entry.
	Rule string
	// Option is the option that would admit it; empty: none.
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
