package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckWritable returns why Open refuses a database apart from its users, and changes nothing. The database may be
// missing: its folder must be there. It opens no file, as closing one would release the locks that this process has on
// it.
func CheckWritable(path string) error {
	if err := checkPlace(path); err != nil {
		return err
	}
	if !isWritable(filepath.Dir(path)) {
		return errFolder(path)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, suffix := range Suffixes {
		if _, err := os.Stat(path + suffix); err == nil && !isWritable(path+suffix) {
			return errFile(path + suffix)
		}
	}
	return checkLinks(path)
}

func errFolder(path string) error {
	return fmt.Errorf("the folder %s of the database is not writable", filepath.Dir(path))
}

func errFile(path string) error { return fmt.Errorf("the database %s is not writable", path) }

// checkPlace returns an error if there is no folder, or something else in the place of the database.
func checkPlace(path string) error {
	folder := filepath.Dir(path)
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder %s of the database does not exist", folder)
	case err != nil:
		return fmt.Errorf("look at the database's folder: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is no folder, so the database %s cannot be in it", folder, path)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		what := "no regular file"
		if info.IsDir() {
			what = "a folder"
		}
		return fmt.Errorf("%s is %s, not a database", path, what)
	}
	return nil
}

// checkLinks returns an error for a database with several hard links.
func checkLinks(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the database: %w", err)
	}
	if n := links(info); n > 1 {
		return fmt.Errorf("the database %s has %d names (hard links): its log %s-wal belongs to one of them alone; "+
			"remove the others, or copy the file",
			path, n, filepath.Base(path))
	}
	return nil
}

// Exposed returns the files of a database that others than their owner can read or write, with their modes.
func Exposed(path string) (map[string]os.FileMode, error) {
	found := make(map[string]os.FileMode)
	for _, suffix := range append(Suffixes[:], lockSuffix) {
		info, err := os.Stat(path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at the database's files: %w", err)
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			found[path+suffix] = mode
		}
	}
	return found, nil
}
