package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ringback/ringback/store"
)

// MaxFaults bounds the faults of one shard that a report lists.
const MaxFaults = 10_000

// Report is the result of an audit of a store.
type Report struct {
	Shards int
	// Ledger is that of the last look at each shard.
	Ledger store.Ledger
	// Faults are in order of shard, kind, place and id.
	Faults []store.Fault
	// More is set when a shard has more faults than MaxFaults. A repair has mended those that are not listed as well.
	More bool
}

// Left returns the number of faults that are not repaired.
func (r *Report) Left() (n int) {
	for i := range r.Faults {
		if !r.Faults[i].Repaired {
			n++
		}
	}
	return n
}

// Run audits a store. With repair it also repairs what it finds.
func Run(ctx context.Context, a store.Auditor, repair bool) (Report, error) {
	report := Report{Shards: a.Shards()}
	for shard := range a.Shards() {
		r := run{auditor: a, shard: shard}
		found, err := confirmed(ctx, func() (result, error) { return r.auditOnce(ctx, false) })
		if err == nil && repair && len(found.faults) > 0 {
			found, err = r.repair(ctx, found)
		}
		if err != nil {
			return report, err
		}
		report.add(found)
	}
	missing, err := confirmed(ctx, func() (result, error) { return missingJobs(ctx, a) })
	if err == nil {
		report.add(missing)
	}
	return report, err
}

func (r *Report) add(found result) {
	faults := slices.SortedFunc(maps.Values(found.faults), func(a, b store.Fault) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Where, b.Where), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Detail, b.Detail))
	})
	r.Faults = append(r.Faults, faults...)
	r.Ledger, r.More = r.Ledger.Plus(found.ledger), r.More || found.more
}

// A run is the audit of one shard.
type run struct {
	auditor store.Auditor
	shard   int
}

// A result is what one look at all data of a shard has found.
type result struct {
	faults map[key]store.Fault
	ledger store.Ledger
	more   bool
}

// A key identifies a fault in two looks. Numbers in its detail may change.
type key struct {
	kind              store.RepairKind
	where, id, detail string
}

func keyOf(f *store.Fault) key {
	detail := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, f.Detail)
	return key{f.Kind, f.Where, f.ID, detail}
}

// auditOnce looks at all data once. With repair it repairs.
func (r *run) auditOnce(ctx context.Context, repair bool) (result, error) {
	found := result{faults: map[key]store.Fault{}}
	for page, err := range r.auditor.Audit(ctx, r.shard, repair) {
		if err != nil {
			return found, fmt.Errorf("audit: %w", err)
		}
		found.ledger = found.ledger.Plus(page.Ledger)
		for i := range page.Faults {
			f := page.Faults[i]
			k := keyOf(&f)
			if _, known := found.faults[k]; !known && len(found.faults) == MaxFaults {
				found.more = true
				continue
			}
			f.Shard = r.shard
			found.faults[k] = f
		}
		if err := sleep(ctx, page.Pause); err != nil {
			return found, err
		}
	}
	return found, nil
}

// confirmed returns the faults that two looks have found. If the first finds none, it is the only one.
func confirmed(ctx context.Context, look func() (result, error)) (result, error) {
	began := time.Now()
	first, err := look()
	if err != nil || len(first.faults) == 0 {
		return first, err
	}
	var after time.Duration
	for _, f := range first.faults {
		after = max(after, f.After)
	}
	if err := sleep(ctx, after-time.Since(began)); err != nil {
		return first, err
	}
	second, err := look()
	maps.DeleteFunc(second.faults, func(k key, _ store.Fault) bool {
		_, twice := first.faults[k]
		return !twice
	})
	second.more = second.more && first.more
	return second, err
}

// repair repairs a shard in which faults were found, and looks what is left. Each fault is reported once: as left, or
// as repaired.
func (r *run) repair(ctx context.Context, found result) (result, error) {
	if _, err := r.auditOnce(ctx, true); err != nil {
		return found, err
	}
	left, err := confirmed(ctx, func() (result, error) { return r.auditOnce(ctx, false) })
	for k, f := range found.faults {
		if _, still := left.faults[k]; !still {
			f.Repaired = true
			left.faults[k] = f
		}
	}
	left.more = left.more || found.more
	return left, err
}

// sleep waits.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("the audit was stopped"), context.Cause(ctx))
	}
}
