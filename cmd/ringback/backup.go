package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ringback/ringback/internal/app"
)

// backupCommand is ringback backup.
type backupCommand struct {
	configFlag `embed:""`

	// Store to copy: sqlite:FILE. It may be in use.
	Store string `default:"sqlite:ringback.db" placeholder:"URL"`
	// File to create. It must not exist.
	To string `required:"" placeholder:"FILE" variable:"RINGBACK_BACKUP_TO"`
}

// RunCommand copies the store and prints the number of jobs in the copy.
func (c *backupCommand) RunCommand(ctx context.Context, p *process) error {
	made, err := app.Backup(ctx, c.Store, c.To)
	if err != nil {
		return storeError(err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s holds %d jobs\n", made.Path, made.Jobs)
	return err
}

// restoreCommand is ringback restore.
type restoreCommand struct {
	configFlag `embed:""`

	// Store to replace: sqlite:FILE. It must not be in use. Existing files are moved aside.
	Store string `default:"sqlite:ringback.db" placeholder:"URL"`
	// Copy to restore, made by ringback backup, by sqlite3's .backup, or by copying a stopped service's file and its
	// -wal.
	From string `required:"" placeholder:"FILE" variable:"RINGBACK_RESTORE_FROM"`
}

// RunCommand restores the store and prints its number of jobs and the path of the replaced file.
func (c *restoreCommand) RunCommand(ctx context.Context, p *process) error {
	made, err := app.Restore(ctx, c.From, c.Store, slog.New(slog.NewTextHandler(p.stderr, nil)))
	if err != nil {
		return storeError(err)
	}
	if _, err := fmt.Fprintf(p.stdout, "%s holds %d jobs\n", made.Path, made.Jobs); err != nil {
		return err
	}
	if made.Aside != "" {
		_, err = fmt.Fprintf(p.stdout, "the replaced store is now %s\n", made.Aside)
	}
	return err
}

// storeError makes an error that a retry cannot fix a usageError.
func storeError(err error) error {
	_, isSetting := errors.AsType[*app.SettingError](err)
	if isSetting || errors.Is(err, app.ErrNoFile) || errors.Is(err, app.ErrSeveralStores) {
		return &usageError{err}
	}
	return err
}
