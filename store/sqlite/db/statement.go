package db

// A Statement is SQL that each connection prepares at its first use.
type Statement int

// texts are the statements' SQL. It is complete before the first connection is opened.
var texts []string

// NewStatement registers a statement. It is called for package-level variables only.
func NewStatement(sql string) Statement {
	texts = append(texts, sql)
	return Statement(len(texts) - 1)
}

// Text returns the SQL.
func (s Statement) Text() string { return texts[s] }

// Statements returns all registered statements.
func Statements() []Statement {
	all := make([]Statement, len(texts))
	for i := range all {
		all[i] = Statement(i)
	}
	return all
}

var (
	beginWrite = NewStatement(`BEGIN IMMEDIATE`)
	commit     = NewStatement(`COMMIT`)
	rollback   = NewStatement(`ROLLBACK`)
	beginRead  = NewStatement(`BEGIN`)
	endRead    = NewStatement(`END`)
	updateMark = NewStatement(`UPDATE wal_check SET base = mark, mark = ? WHERE one = 1`)
)
