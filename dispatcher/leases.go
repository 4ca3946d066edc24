package dispatcher

import (
	"cmp"
	"context"

	"github.com/ringback/ringback/dispatcher/pull"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// newPuller returns the Puller of a Dispatcher, which leases also if others deliver.
func (d *Dispatcher) newPuller() *pull.Puller {
	owner := cmp.Or(d.opts.Owner, store.NewLeaseOwner())
	return pull.New(pull.Options{
		Store: d.opts.Store, Policies: pullPolicies{poolPolicies{d.policies, d.sealer}}, Owner: owner,
		Process: pool.ProcessName(owner), Callbacks: d.notifyEnd, Settled: d.settled,
		HealthChanged: d.logHealth,
		Observer:      liveObserver{d.opts.Observer, d.live}, Tracer: d.poolTracer(), Random: d.opts.Random,
		Logger: d.log,
	})
}

// pullPolicies implements pull.Policies.
type pullPolicies struct{ poolPolicies }

// Update reloads policies as for a registration.
func (t pullPolicies) Update(ctx context.Context) error {
	_, err := t.Cached(ctx)
	return err
}

// UpdateNow reloads policies.
func (t pullPolicies) UpdateNow(ctx context.Context) error {
	_, err := t.Reload(ctx)
	return err
}

// Lease leases jobs of a pulled topic to a client. It returns none when there are none until the request's Wait is
// over, or the process stops. Errors: *store.NotPulledError, store.ErrStopping, and those of package store.
func (d *Dispatcher) Lease(ctx context.Context, request store.LeaseRequest) ([]store.LeasedJob, error) {
	return d.puller.Lease(ctx, request)
}

// SettleLeases ends or extends up to store.MaxBatch leases of a namespace's clients, and returns an error for each:
// nil, store.ErrLeaseLost, store.ErrCancelRequested, or why the store is unavailable. Then it leases jobs as next asks;
// nil: none. The namespace is that of the leases and of next.
func (d *Dispatcher) SettleLeases(
	ctx context.Context, _ string, reports []store.LeaseReport, next *store.LeaseRequest,
) ([]error, []store.LeasedJob, error) {
	return d.puller.Settle(ctx, reports, next)
}

// ReleaseLeases makes leased jobs of a namespace due again that their client has not received.
func (d *Dispatcher) ReleaseLeases(ctx context.Context, _ string, leased []store.LeasedJob) {
	d.puller.Release(ctx, leased)
}

// LeaseClients returns the number of clients that wait for jobs of pulled topics.
func (d *Dispatcher) LeaseClients() int { return d.puller.Clients() }
