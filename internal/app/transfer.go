package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ringback/ringback/dispatcher/transfer"
)

// TransferOptions are those of Export and Import.
type TransferOptions struct {
	// Options are those of the stores: Store, Shards, RedisPrefix, RedisWait; and Logger and Version. Others have no
	// effect.
	Options
	// File is the path of the file; - is Stdin or Stdout.
	File   string
	Stdin  io.Reader
	Stdout io.Writer
	// WithoutSecrets leaves secrets and tokens out of an export.
	WithoutSecrets bool
	// Progress is called every now and then: what has been done with how many jobs, and with how many it will be (0:
	// unknown).
	Progress func(did string, jobs, total int64)
}

// Imported is the result of Import.
type Imported = transfer.Imported

// Ledger counts jobs by namespace, topic and state.
type Ledger = transfer.Ledger

// LedgerColumn is a Ledger with a title.
type LedgerColumn = transfer.Column

// LedgerTable returns ledgers side by side as text.
func LedgerTable(columns ...LedgerColumn) string { return transfer.Table(columns...) }

// SettingError is the error of a setting, which a retry does not mend.
type SettingError struct{ error }

func (e *SettingError) Unwrap() error { return e.error }

// stdio is the File that stands for Stdin and Stdout.
const stdio = "-"

// openStores opens the stores; with existing only those that exist.
func (o *TransferOptions) openStores(
	ctx context.Context, existing bool,
) (t transfer.Options, closeAll func() error, err error) {
	o.Options = o.withDefaults()
	if errs := o.checkStores(); len(errs) > 0 {
		return t, nil, &SettingError{errors.Join(errs...)}
	}
	named, err := parseStores(o.Store)
	if err != nil {
		return t, nil, &SettingError{err}
	}
	t = transfer.Options{Version: o.Version, Logger: o.Logger, WithoutSecrets: o.WithoutSecrets}
	closeAll = func() error {
		var errs []error
		for _, s := range t.Stores {
			errs = append(errs, s.Close())
		}
		return errors.Join(errs...)
	}
	for _, n := range named {
		if _, err := os.Stat(n.file); existing && n.file != "" && err != nil {
			return t, nil, errors.Join(&SettingError{fmt.Errorf("open the store %s: %w", n, err)}, closeAll())
		}
		s, _, err := n.open(ctx, o.Options, o.Logger)
		if err != nil {
			return t, nil, errors.Join(err, closeAll())
		}
		t.Stores = append(t.Stores, transfer.Store{Store: s, Name: n.name, URL: n.String()})
	}
	return t, closeAll, nil
}

// report returns a function for transfer.Options.Progress.
func (o *TransferOptions) report(did string) func(jobs, total int64) {
	return func(jobs, total int64) {
		if o.Progress != nil {
			o.Progress(did, jobs, total)
		}
	}
}

// Export writes the content of stores that are not in use to a new file that only its owner can read. It returns its
// ledger. A file that is not complete is removed.
func Export(ctx context.Context, o TransferOptions) (_ Ledger, err error) {
	t, closeAll, err := o.openStores(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	t.Progress = o.report("exported")
	if o.File == stdio {
		return transfer.Export(ctx, o.Stdout, t)
	}
	file, err := os.OpenFile(o.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		err = &SettingError{fmt.Errorf("%s exists: choose another file, or remove it", o.File)}
	}
	if err != nil {
		return nil, err
	}
	ledger, err := transfer.Export(ctx, file, t)
	if synced := cmp.Or(file.Sync(), file.Close()); err == nil && synced != nil {
		err = fmt.Errorf("write %s: %w", o.File, synced)
	}
	if _, complete := errors.AsType[*transfer.UnreadableError](err); err != nil && !complete {
		err = errors.Join(err, os.Remove(o.File))
	}
	return ledger, err
}

// Import stores the content of a file in stores that are not in use. A file is checked as a whole before; what comes
// from Stdin is not.
func Import(ctx context.Context, o TransferOptions) (_ Imported, err error) {
	in := o.Stdin
	var file *os.File
	if o.File != stdio {
		if file, err = os.Open(o.File); err != nil {
			return Imported{}, &SettingError{err}
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	t, closeAll, err := o.openStores(ctx, false)
	if err != nil {
		return Imported{}, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	if file != nil {
		if mode := readableByOthers(file); mode != 0 {
			o.Logger.Warn("file is readable by other users, and may contain secrets: chmod 600 it", "file", o.File,
				"mode", fmt.Sprintf("%04o", mode))
		}
		t.Progress = o.report("checked")
		checked, err := transfer.Check(ctx, file, t)
		if err != nil {
			return Imported{}, fmt.Errorf("nothing was imported from %s: %w", o.File, err)
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return Imported{}, fmt.Errorf("read %s: %w", o.File, err)
		}
		t.Jobs = checked.Jobs()
	}
	t.Progress = o.report("imported")
	return transfer.Import(ctx, in, t)
}

// readableByOthers returns the mode of a file that group or others can read; 0: they cannot.
func readableByOthers(file *os.File) fs.FileMode {
	info, err := file.Stat()
	if err != nil || info.Mode().Perm()&0o044 == 0 {
		return 0
	}
	return info.Mode().Perm()
}
