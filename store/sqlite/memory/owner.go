package memory

import (
	"slices"

	"github.com/ringback/ringback/store"
)

// leaseOwners counts the leases of a queue by owner. Mostly there is one.
type leaseOwners []ownerLeases

type ownerLeases struct {
	owner store.LeaseOwner
	n     int
}

// add adds n leases, which may be negative, to those of an owner.
func (l *leaseOwners) add(owner store.LeaseOwner, n int) {
	i := slices.IndexFunc(*l, func(o ownerLeases) bool { return o.owner == owner })
	if i < 0 {
		*l = append(*l, ownerLeases{owner, n})
		return
	}
	if (*l)[i].n += n; (*l)[i].n == 0 {
		*l = slices.Delete(*l, i, i+1)
	}
}

// Only reports whether all leases are the owner's.
func (l leaseOwners) Only(owner store.LeaseOwner) bool {
	return len(l) == 0 || len(l) == 1 && l[0].owner == owner
}
