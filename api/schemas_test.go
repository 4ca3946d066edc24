package api

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A schema of openapi.yaml says by a comment of which type its properties are, and in which use:
//
//	# new of job.New without run_at: written by make generate
//	…
//	# end
//
// Properties outside are written by hand, and so are schemas with a comment that says so. "beside job.New" leaves out
// what requests of that type have. The uses are:
//
//	new     a request that makes something: null is as if left out
//	put     the same, of what keeps the secrets of the stored one
//	change  a request in which null is the default, and headers and callbacks are merged
//	edit    a change of a job: of the members that can be changed
//	answer  an answer, which has every member
type use string

const (
	newUse    use = "new"
	putUse    use = "put"
	changeUse use = "change"
	editUse   use = "edit"
	answerUse use = "answer"
)

// taggedTypes are the types of which there are schemas, tables or flags.
var taggedTypes = typesByName(
	access.Principal{}, access.Token{}, job.Durability{}, job.Event{}, job.Job{}, job.Namespace{}, job.NamespaceUsage{},
	job.New{}, job.Quota{}, job.Remedy{}, policy.Backlog{}, policy.Breaker{}, policy.Callback{}, policy.ClientCert{},
	policy.Lane{}, policy.Retention{}, policy.Secret{}, policy.Success{}, policy.Topic{}, policy.Update{},
	store.Backfill{}, store.CatchUp{}, store.LaneFailure{}, store.PublicKey{}, store.Receiver{},
	store.ReceiverHealth{}, store.Schedule{}, store.TroubledLane{},
	store.ScheduleCounts{}, store.ScheduleSettings{}, store.ScheduleTick{}, store.TopicStats{}, store.Work{},
	store.HistoryBucket{}, store.WorstLane{},
	store.Event{}, store.EventCounts{}, store.EventLane{}, store.EventRefusal{}, store.EventSpec{},
	store.WorkFailure{},
)

func typesByName(values ...any) map[string]reflect.Type {
	all := make(map[string]reflect.Type)
	for _, v := range values {
		all[reflect.TypeOf(v).String()] = reflect.TypeOf(v)
	}
	return all
}

// mark is a comment about generated lines.
type mark struct {
	use     use
	of      reflect.Type
	without []string
	byHand  bool // it only names the schema of the type
}

var markPattern = regexp.MustCompile(`(new|put|change|edit|answer) of (\w+\.\w+)(?: without ([\w, ]+))?` +
	`(?: beside (\w+\.\w+))?: (?:rows )?written by (make generate|hand)`)

// readMark reads a mark in a line; nil: there is none.
func readMark(t testing.TB, line string) *mark {
	t.Helper()
	m := markPattern.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	require.Contains(t, taggedTypes, m[2], line)
	found := &mark{use(m[1]), taggedTypes[m[2]], strings.Split(m[3], ", "), m[5] == "hand"}
	if m[4] != "" {
		for _, other := range job.MembersOf(taggedTypes[m[4]]).All {
			if !other.Is("answer") {
				found.without = append(found.without, other.Name)
			}
		}
	}
	return found
}

// fields returns the fields of a mark.
func (m *mark) fields(t testing.TB) []field {
	t.Helper()
	isLeftOut := func(f field) bool {
		isFixed := m.use == editUse && !f.Is("editable") && !f.Is("nullable")
		isShown := f.Is("answer") && (m.use == newUse || m.use == putUse)
		return isFixed || isShown || slices.Contains(m.without, f.Name)
	}
	fields := slices.DeleteFunc(fieldsOf(t, m.of), isLeftOut)
	for _, f := range fields {
		require.True(t, m.use == answerUse || f.text != "", "%s: write a comment that says what it is", f.key)
	}
	return fields
}

// schemaWriter writes the schemas of openapi.yaml.
type schemaWriter struct {
	testing.TB

	names map[schemaKey]string // of schemas
}

// schemaKey is what the name of a schema is found by.
type schemaKey struct {
	use use
	of  reflect.Type
}

func TestOpenAPI_SchemasAreThoseOfTheTypes(t *testing.T) {
	const path, head = "openapi.yaml", "\n  schemas:\n"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, schemas, _ := strings.Cut(string(text), head)
	c := schemaWriter{t, make(map[schemaKey]string)}
	all := regexp.MustCompile(`(?m)^    \w+:`).Split(schemas, -1)
	heads := regexp.MustCompile(`(?m)^    \w+:`).FindAllString(schemas, -1)
	for i, head := range heads {
		for line := range strings.Lines(all[i+1]) {
			if m := readMark(t, line); m != nil {
				c.names[schemaKey{m.use, m.of}] = strings.Trim(head, " :")
			}
		}
	}
	var want strings.Builder
	want.WriteString(before + head + all[0])
	for i, head := range heads {
		want.WriteString(head + c.schema(all[i+1]))
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want.String()), 0o600))
		return
	}
	require.Equal(t, want.String(), string(text), "run make generate")
}

// schema returns the text of a schema with its generated lines written anew.
func (c schemaWriter) schema(text string) string {
	var b strings.Builder
	var m *mark
	isAnswer := false
	for line := range strings.Lines(text) {
		switch found := readMark(c, line); {
		case found != nil && !found.byHand:
			m = found
			isAnswer = m.use == answerUse
			b.WriteString(line)
			for _, f := range m.fields(c) {
				b.WriteString(c.property(f, m))
			}
		case strings.TrimSpace(line) == "# end":
			m = nil
			b.WriteString(line)
		case m == nil:
			b.WriteString(line)
		}
	}
	require.Nil(c, m, "a generated part of openapi.yaml has no # end")
	text = b.String()
	if !isAnswer {
		return text
	}
	// Answers have every member.
	_, properties, _ := strings.Cut(text, "\n      properties:\n")
	var names []string
	for _, p := range regexp.MustCompile(`(?m)^        (\w+):`).FindAllStringSubmatch(properties, -1) {
		names = append(names, p[1])
	}
	required := "      required:\n" + wrap("["+strings.Join(names, ", ")+"]", 8) + "      properties:\n"
	return regexp.MustCompile(`(?m)^      required:(?: .*)?\n(?:        .*\n)*      properties:\n`).
		ReplaceAllLiteralString(text, required)
}

// width is the number of columns of a generated line.
const width = 120

// wrap returns a text in lines that are indented.
func wrap(text string, indent int) string {
	var b strings.Builder
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width-indent {
			b.WriteString(strings.Repeat(" ", indent) + line + "\n")
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return b.String() + strings.Repeat(" ", indent) + line + "\n"
}

// property returns the lines of a property.
func (c schemaWriter) property(f field, m *mark) string {
	c.Helper()
	parts, text := []string{"readOnly: true"}, join("Read-only.", f.text)
	if m.use != changeUse || !f.Is("answer") {
		s := c.shapeOf(f, m.use)
		parts, text = s.parts(), f.text
		if m.use != answerUse {
			text = join(text, s.rule, unsetText(f, s, m.use))
		}
	}
	description := ""
	if text != "" {
		description = "description: " + quote(text)
	}
	inline := strings.Join(slices.DeleteFunc(append(slices.Clone(parts), description), isEmpty), ", ")
	line := fmt.Sprintf("        %s: {%s}\n", f.Name, inline)
	if len([]rune(line)) <= width+1 || text == "" {
		return line
	}
	var b strings.Builder
	fmt.Fprintf(&b, "        %s:\n", f.Name)
	for _, p := range parts {
		fmt.Fprintf(&b, "          %s\n", p)
	}
	if line := "          " + description + "\n"; len([]rune(line)) <= width+1 {
		return b.String() + line
	}
	return b.String() + "          description: >-\n" + wrap(text, 12)
}

func isEmpty(text string) bool { return text == "" }

// unsetText returns the sentence about a default. What an edit leaves out stays as it is; only null is the default.
func unsetText(f field, s shape, u use) string {
	switch {
	case u == editUse && !s.null:
		return "Cannot be null."
	case f.unset == "" || s.isDefault:
		return ""
	case u == editUse:
		return "Null: " + f.unset + "."
	}
	return "Default: " + f.unset + "."
}

func quote(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return strings.TrimSpace(b.String())
}

// nameOf returns the name of the schema of a struct in a use.
func (c schemaWriter) nameOf(u use, of reflect.Type) string {
	c.Helper()
	name := c.names[schemaKey{u, of}]
	require.NotEmpty(c, name, "openapi.yaml needs a schema with the comment # %s of %s: written by make generate", u,
		of)
	return name
}
