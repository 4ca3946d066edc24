package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ringback/ringback/store/sqlite"
)

// Copy is the result of Backup or Restore.
type Copy = sqlite.Copy

// ErrNoFile is returned for a store that is not a SQLite file.
var ErrNoFile = errors.New("store: backup and restore need sqlite:FILE; use Redis's own tools for a Redis store")

// ErrSeveralStores is returned for more than one store.
var ErrSeveralStores = errors.New("store: several are configured, and each is copied by itself: pass one, as in " +
	"--store sqlite:FILE")

// Backup copies a SQLite store, in use or not, to a new file and verifies the copy.
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

// Restore verifies a copy and replaces a SQLite store that is not in use by it. The replaced files are moved aside.
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

// fileOf returns the file of a SQLite store, else ErrNoFile or a parse error.
func fileOf(text string) (string, error) {
	texts := splitStores(cmp.Or(text, DefaultStore))
	if len(texts) > 1 {
		return "", ErrSeveralStores
	}
	name, err := parseNamedStore(cmp.Or(texts...))
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	if name.file == "" {
		return "", ErrNoFile
	}
	return name.file, nil
}
