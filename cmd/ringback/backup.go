package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ringback/ringback/app"
)

// backupCommand is ringback backup.
type backupCommand struct {
	Store string `default:"sqlite:ringback.db" placeholder:"URL" help:"The store to copy, as serve has it: sqlite:FILE. It may be in use."`
	To    string `required:"" placeholder:"FILE" variable:"RINGBACK_BACKUP_TO" help:"The file to make, which must not exist."`
}

// Run copies the store and prints what the copy holds.
func (c *backupCommand) Run(ctx context.Context, p *process) error {
	made, err := app.Backup(ctx, c.Store, c.To)
	if err != nil {
		return copyError(err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s holds %d jobs\n", made.Path, made.Jobs)
	return err
}

// restoreCommand is ringback restore.
type restoreCommand struct {
	Store string `default:"sqlite:ringback.db" placeholder:"URL" help:"The store to restore, as serve has it: sqlite:FILE. It must not be in use; what is there is moved aside."`
	From  string `required:"" placeholder:"FILE" variable:"RINGBACK_RESTORE_FROM" help:"The copy to restore: of ringback backup, of sqlite3's .backup, or of a stopped service's file with the -wal beside it."`
}

// Run restores the store, and prints what it holds and where the one before is.
func (c *restoreCommand) Run(ctx context.Context, p *process) error {
	made, err := app.Restore(ctx, c.From, c.Store, slog.New(slog.NewTextHandler(p.stderr, nil)))
	if err != nil {
		return copyError(err)
	}
	if _, err := fmt.Fprintf(p.stdout, "%s holds %d jobs\n", made.Path, made.Jobs); err != nil {
		return err
	}
	if made.Aside != "" {
		_, err = fmt.Fprintf(p.stdout, "what was there before is now %s\n", made.Aside)
	}
	return err
}

// copyError tells a store that cannot be copied, however often it is tried, from one that could not be now.
func copyError(err error) error {
	if errors.Is(err, app.ErrNoFile) {
		return &usageError{err}
	}
	return err
}
