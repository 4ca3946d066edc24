package web

import (
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/console/words"
)

// Funcs are the functions of all templates; the console adds live. Templates cannot call methods: see Templates.
func Funcs() template.FuncMap {
	return template.FuncMap{
		"count":    words.Count,
		"number":   words.Number,
		"duration": words.Duration,
		"ago":      words.Ago,
		"in":       words.In,
		"bytes":    words.Bytes,
		"reason":   words.Reason,
		"class":    words.ErrorClass,
		"answer":   words.Answer,
		"join":     strings.Join,
		"pill":     newPill,
		"table":    newTable,
		"stacked":  func(t Table) Table { t.Class += " stack"; return t },
		"compact":  func(t Table) Table { t.Class += " compact"; return t },

		"can":       (*View).Can,
		"canTopic":  (*View).CanTopic,
		"withData":  (*View).With,
		"time":      (*View).Time,
		"moment":    (*View).Moment,
		"path":      (*View).Path,
		"pathQuery": (*View).PathQuery,
		"link":      (*View).Link,
		"refresh":   (*View).Refresh,
		"liveLink":  (*View).LiveLink,
		"remedy":    (*View).Remedy,

		"isZero":  time.Time.IsZero,
		"isAfter": time.Time.After,

		"hasErrors":  FormErrors.Any,
		"errorOf":    FormErrors.Of,
		"errorTitle": FormErrors.Title,

		"filterFields": FilterForm.Fields,
		"moreFilters":  FilterForm.More,
		"filtersOpen":  FilterForm.Open,
		"labelInputs":  FilterForm.Labels,
	}
}

// FilterForm is the data of the template "filter".
type FilterForm interface {
	// Fields are always seen, More when Open or when the reader asks for them.
	Fields() []Field
	More() []Field
	Open() bool
	// Labels are the inputs of labels.
	Labels() []LabelInput
}

// LabelInput is the input of a label. The inputs have one name, so the ids of later ones are counted.
type LabelInput struct{ ID, Value string }

// Field is the data of the template "field": a label, an input, and what is wrong with it.
type Field struct {
	Name, Label, Value, Hint, Error string
	// Kind is the input's type, or textarea, select or checkbox. Empty: text.
	Kind string
	// Options are those of a select: value and text.
	Options []Link
	// Attributes of the input.
	Required, Checked, Disabled, Autofocus bool
	// Search: the key / leads to it. Wide: it takes two columns.
	Search, Wide bool
	Placeholder  string
	List         string // the id of a datalist
	Rows         int
}

// Table is the data of the template "table": the name of a table for screen readers, its class, and its columns.
type Table struct {
	Label, Class string
	Columns      []Column
}

// Column is the head of a column of a table.
type Column struct {
	Text           string
	Number, Hidden bool // it has numbers; only screen readers read the head
}

// newTable makes a table of the texts of its columns, for templates: {{template "table" (table "Topics" "Topic"
// "Waiting:num" (and .CanChange "Actions:hidden"))}}. A text that is none, as of a condition, is no column.
func newTable(label string, columns ...any) Table {
	t := Table{Label: label, Class: "list"}
	for _, c := range columns {
		if text, ok := c.(string); ok {
			text, kind, _ := strings.Cut(text, ":")
			t.Columns = append(t.Columns, Column{Text: text, Number: kind == "num", Hidden: kind == "hidden"})
		}
	}
	return t
}

// Pill is the data of the template "pill": a word with a colour.
type Pill struct{ Class, Text string }

// pillClasses are the words that have a colour of their own.
var pillClasses = []string{
	"scheduled", "ready", "running", "delivered", "dead", "cancelled", "again", "released", "lost", "paused", "open",
	"half-open", "held", "ok", "warn", "bad", "done", "stopped", "failed",
}

// newPill makes a pill of a code; unknown ones are grey.
func newPill(code string) Pill {
	class := strings.ReplaceAll(code, "_", "-")
	if !slices.Contains(pillClasses, class) {
		class = "plain"
	}
	return Pill{Class: class, Text: strings.ReplaceAll(code, "_", " ")}
}
