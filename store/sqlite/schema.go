package sqlite

import (
	"database/sql/driver"
	_ "embed"
	"fmt"
)

// schemaVersion is the PRAGMA user_version of a database with this schema. No other can be read.
const schemaVersion = 2

//go:embed schema.sql
var schema string

// checkVersion refuses a database with another schema.
func checkVersion(path string, version int64) error {
	switch {
	case version > schemaVersion:
		return fmt.Errorf("the database %s has schema %d, made by a newer version of this program; this one reads schema %d",
			path, version, schemaVersion)
	case version < schemaVersion:
		return fmt.Errorf("the database %s has schema %d, made by an older version of this program that was never released; "+
			"this one reads schema %d: use another file", path, version, schemaVersion)
	}
	return nil
}

// prepare makes the tables of a new database, and refuses one with another schema.
func prepare(c *conn, path string) error {
	var version, tables int64
	read := func(sql string, into *int64) error {
		return c.queryText(shared, sql, func(row []driver.Value) error {
			*into = integer(row[0])
			return nil
		})
	}
	if err := read("PRAGMA user_version", &version); err != nil {
		return err
	}
	if version > 0 {
		if err := checkVersion(path, version); err != nil {
			return err
		}
		return c.execText("PRAGMA journal_mode=WAL")
	}
	if err := read("SELECT count(*) FROM sqlite_schema", &tables); err != nil {
		return err
	}
	if tables > 0 {
		return fmt.Errorf("the database %s belongs to another program", path)
	}
	// auto_vacuum takes effect only before the first table.
	if err := c.execText("PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL"); err != nil {
		return err
	}
	sql := fmt.Sprintf("BEGIN IMMEDIATE; %s PRAGMA user_version=%d; COMMIT", schema, schemaVersion)
	if err := c.execText(sql); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	return nil
}
