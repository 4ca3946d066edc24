package table

import (
	_ "embed"

	"github.com/ringback/ringback/store/sqlite/db"
)

//go:embed schema.sql
var Tables string

var Schema = db.Schema{Version: 3, SQL: Tables, Counted: "jobs"}
