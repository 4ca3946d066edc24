package table

import (
	_ "embed"

	"github.com/ringback/ringback/store/sqlite/db"
)

//go:embed schema.sql
var Tables string

// Schema is the schema of this program. Its version grows with each change of Tables.
var Schema = db.Schema{Version: 4, SQL: Tables, Counted: "jobs"}
