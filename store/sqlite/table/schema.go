package table

import (
	_ "embed"

	"github.com/ringback/ringback/store/sqlite/db"
)

// StepsAhead is the key of clock.Steps.Ahead in meta.
const StepsAhead = "steps_ahead"

//go:embed schema.sql
var Tables string

// Schema is the schema of this program. Its version grows with each change of Tables.
var Schema = db.Schema{Version: 9, SQL: Tables, Counted: "jobs"}
