package sqlite

import (
	"context"
	"log/slog"

	"github.com/ringback/ringback/store"
)

// OpenAuditor opens an existing database for an audit, beside the process that uses it. With repair it fails while a
// process uses the database: that would not see what is repaired.
func OpenAuditor(ctx context.Context, path string, repair bool, log *slog.Logger) (store.Auditor, error) {
	return openAuditor(ctx, path, repair, log)
}
