package sqlite

import (
	"context"
	"log/slog"

	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A Copy is the result of Backup or Restore.
type Copy = db.Copy

// Backup copies a database, in use or not, to a file that must not exist, and checks the copy. The copy is one state of
// the database and needs no log; its owner alone can read it. Meanwhile the log of a database in use grows.
func Backup(ctx context.Context, path, to string) (Copy, error) {
	return db.Backup(ctx, table.Schema, path, to)
}

// Restore replaces a database by a copy of another file: a backup, or the files of a database that was not in use. The
// copy is checked before anything is changed, and the file at from stays as it is. The former database is moved aside
// with its log. Restore fails while a process uses the database.
func Restore(ctx context.Context, from, path string, log *slog.Logger) (Copy, error) {
	return db.Restore(ctx, table.Schema, from, path, log)
}
