package db

import (
	"context"
	"fmt"
)

// A Schema is the tables of a database. The package adds wal_check to them.
type Schema struct {
	// Version is the PRAGMA user_version of a database with this schema, above 0. No other version can be opened.
	Version int64
	// SQL makes the tables.
	SQL string
	// Counted is the table whose rows Backup and Restore count.
	Counted string
}

// checkVersion returns an error for a database with another schema.
func (s Schema) checkVersion(path string, version int64) error {
	switch {
	case version > s.Version:
		return fmt.Errorf("the database %s has schema %d, made by a newer version of this program; this one reads "+
			"schema %d",
			path, version, s.Version)
	case version < s.Version:
		return fmt.Errorf("the database %s has schema %d, made by an older version of this program that was never "+
			"released; "+
			"this one reads schema %d: use another file", path, version, s.Version)
	}
	return nil
}

// check returns an error for a database of another program, or with another schema.
func (s Schema) check(ctx context.Context, c *Conn, path string) error {
	var version, tables int64
	if err := c.ints(ctx, "SELECT user_version, (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "+
		"('wal_check', '"+s.Counted+"')) FROM pragma_user_version", &version, &tables); err != nil {
		return fmt.Errorf("read %s: %w", path, Unavailable(err))
	}
	if version == 0 || tables != 2 {
		return fmt.Errorf("%s is no database of this program", path)
	}
	return s.checkVersion(path, version)
}

// prepare makes the tables of a new database. It returns an error for one with another schema.
func (s Schema) prepare(c *Conn, path string) error {
	var version, tables int64
	if err := c.ints(shared, "PRAGMA user_version", &version); err != nil {
		return err
	}
	if version > 0 {
		if err := s.checkVersion(path, version); err != nil {
			return err
		}
		return c.execText("PRAGMA journal_mode=WAL")
	}
	if err := c.ints(shared, "SELECT count(*) FROM sqlite_schema", &tables); err != nil {
		return err
	}
	if tables > 0 {
		return fmt.Errorf("the database %s belongs to another program", path)
	}
	if err := c.execText("PRAGMA journal_mode=WAL"); err != nil {
		return err
	}
	if err := c.execText(fmt.Sprintf("BEGIN IMMEDIATE; %s %s PRAGMA user_version=%d; "+
		"COMMIT", walCheck, s.SQL, s.Version)); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	return nil
}
