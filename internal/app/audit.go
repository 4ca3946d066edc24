package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ringback/ringback/internal/audit"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/sqlite"
)

// AuditReport is the result of an audit of one store.
type AuditReport = audit.Named

// Audit audits the stores of Options.Store, of which only RedisPrefix and Logger are used besides, and calls done with
// the report of each. Other processes may use the stores, but not a SQLite store that is to be repaired.
func Audit(ctx context.Context, o Options, repair bool, done func(*AuditReport) error) error {
	o = o.withDefaults()
	stores, err := parseStores(o.Store)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	for _, n := range stores {
		report, err := n.audit(ctx, &o, repair)
		if err != nil {
			return fmt.Errorf("audit the store %s: %w", n, err)
		}
		if err := done(&AuditReport{Name: n.name, URL: n.String(), Report: report}); err != nil {
			return err
		}
	}
	return nil
}

// CheckAudit returns an error for options that Audit does not accept.
func CheckAudit(o Options) error {
	if _, err := parseStores(o.withDefaults().Store); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := redis.CheckPrefix(o.RedisPrefix); err != nil {
		return fmt.Errorf("redis-prefix: %w", err)
	}
	return nil
}

// audit audits a store.
func (n namedStore) audit(ctx context.Context, o *Options, repair bool) (audit.Report, error) {
	a, err := n.openAuditor(ctx, o, repair, o.Logger)
	if err != nil {
		return audit.Report{}, err
	}
	report, err := audit.Run(ctx, a, repair)
	if closed := a.Close(); err == nil {
		err = closed
	}
	return report, err
}

func (n namedStore) openAuditor(ctx context.Context, o *Options, repair bool, log *slog.Logger) (store.Auditor, error) {
	if n.file != "" {
		a, err := sqlite.OpenAuditor(ctx, n.file, repair, log)
		if err != nil && repair {
			err = fmt.Errorf(
				"%w; a SQLite store can be checked at any time, but repaired only while no process uses it", err,
			)
		}
		return a, err
	}
	return redis.OpenAuditor(ctx,
		redis.Options{URL: n.url, Prefix: o.RedisPrefix, Limits: policy.Builtin().Limits(), Logger: log})
}
