package main

import (
	"context"
	"maps"
	"slices"
)

// An earlier version of Ringback (-earlier) is measured in the same rounds as this one, in figures whose contestants
// start their own processes (figure.ownProcesses).

// earlierName returns the name of the earlier version of a contestant. It is a peer: if it fails, it is left out.
func earlierName(name string) string { return "earlier " + name }

// withEarlier adds the earlier version after each contestant that is Ringback.
func (b *bench) withEarlier(all []contestant) []contestant {
	if b.earlier == "" || !b.ownProcesses {
		return all
	}
	var both []contestant
	for _, c := range all {
		both = append(both, c)
		if isOurs(c.name) {
			both = append(both, contestant{earlierName(c.name), func(ctx context.Context) (reading, error) {
				current := b.program
				b.program = b.earlier
				defer func() { b.program = current }()
				return c.run(ctx)
			}})
		}
	}
	return both
}

// compareEarlier adds a row for each measure of each contestant that has an earlier version.
func (b *bench) compareEarlier(all []contestant) {
	for _, c := range all {
		measures := make(map[string]bool)
		for _, s := range b.fig.Runs {
			measures[s.Measure] = measures[s.Measure] || s.Contestant == earlierName(c.name)
		}
		for _, measure := range slices.Sorted(maps.Keys(measures)) {
			if measures[measure] {
				b.fig.compare(b.fig.Title+": "+c.name+", "+measure, c.name, earlierName(c.name), measure, nil)
			}
		}
	}
}
