package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ringback/ringback/store/sqlite"
)

// Copy is what Backup or Restore has made.
type Copy = sqlite.Copy

// ErrNoFile says that a store is not a file: a Redis is backed up and restored by its own means.
var ErrNoFile = errors.New("store: only sqlite:FILE is backed up and restored by this program; a Redis has its own means")

// Backup copies a SQLite store, in use or not, to a new file, and checks the copy.
func Backup(ctx context.Context, from, to string) (Copy, error) {
	file, err := fileOf(from)
	if err != nil {
		return Copy{}, err
	}
	made, err := sqlite.Backup(ctx, file, to)
	if err != nil {
		return Copy{}, fmt.Errorf("back up the store sqlite:%s: %w", file, err)
	}
	return made, nil
}

// Restore puts a copy in the place of a SQLite store that is not in use, after a check, and moves what was there aside.
func Restore(ctx context.Context, from, to string, log *slog.Logger) (Copy, error) {
	file, err := fileOf(to)
	if err != nil {
		return Copy{}, err
	}
	made, err := sqlite.Restore(ctx, from, file, log)
	if err != nil {
		return Copy{}, fmt.Errorf("restore the store sqlite:%s: %w", file, err)
	}
	return made, nil
}

// fileOf is the file of a store; ErrNoFile, or an error that says how a store is named.
func fileOf(text string) (string, error) {
	name, err := parseStore(cmp.Or(text, DefaultStore))
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	if name.file == "" {
		return "", ErrNoFile
	}
	return name.file, nil
}
