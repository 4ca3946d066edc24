package sqlite

import (
	_ "embed"

	"github.com/ringback/ringback/store/sqlite/db"
)

//go:embed schema.sql
var tables string

var schema = db.Schema{Version: 2, SQL: tables, Counted: "jobs"}
