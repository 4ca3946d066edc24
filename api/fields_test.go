package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// This file reads what make generate writes of a member of the API: its tags, and the comment of its field. See
// job.Member.

// field is a field that is a member of the API.
type field struct {
	*job.Member

	key      string // as extras has it
	validate string // its tags of the validator
	text     string // what it is, in sentences
	unset    string // its default, with values in backquotes
}

// fieldsOf returns the fields of a struct in the order of its members.
func fieldsOf(t testing.TB, of reflect.Type) (all []field) {
	t.Helper()
	members := job.MembersOf(of)
	var visit func(reflect.Type)
	visit = func(owner reflect.Type) {
		for f := range owner.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("api"), ",")
			switch {
			case name != "":
				key := owner.String() + "." + f.Name
				m := members.Named(name)
				text, unset := textOf(commentsOf(t, owner)[key], f.Name)
				if unset = cmp.Or(unset, m.Or()); unset == "" && !m.Is("answer") {
					unset = builtin(t, owner)[name]
				}
				validate := f.Tag.Get("validate")
				all = append(all, field{m, key, validate, text, markedDefault(unset, validate)})
			case f.Anonymous && f.Type.Kind() == reflect.Struct, options == "inline":
				visit(f.Type)
			}
		}
	}
	visit(of)
	require.Len(t, all, len(members.All), "%s", of)
	return all
}

// textOf returns the text of a field and its default: the first paragraph of its comment without its name.
func textOf(comment, name string) (text, unset string) {
	first, _, _ := strings.Cut(comment, "\n\n")
	first = strings.Join(strings.Fields(first), " ")
	first = regexp.MustCompile(`^`+name+` (?:(?:is|are) )?`).ReplaceAllString(first, "")
	text, unset, _ = strings.Cut(first, "Default: ")
	if text = strings.TrimSpace(text); text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text, strings.TrimSuffix(unset, ".")
}

var commentsByFolder = make(map[string]map[string]string)

// commentsOf returns the comments of the fields in the package of a type, by type and field.
func commentsOf(t testing.TB, of reflect.Type) map[string]string {
	t.Helper()
	folder := ".." + strings.TrimPrefix(of.PkgPath(), "github.com/ringback/ringback")
	if known := commentsByFolder[folder]; known != nil {
		return known
	}
	found := make(map[string]string)
	files, err := filepath.Glob(folder + "/*.go")
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, _ := n.(*ast.TypeSpec)
			if spec == nil {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok && !strings.HasSuffix(name, "_test.go") {
				for _, f := range fields.Fields.List {
					for _, id := range f.Names {
						found[file.Name.Name+"."+spec.Name.Name+"."+id.Name] = f.Doc.Text()
					}
				}
			}
			return false
		})
	}
	commentsByFolder[folder] = found
	return found
}

// builtin returns the defaults of the built-in policy as JSON by member, if the type is that of a policy.
func builtin(t testing.TB, of reflect.Type) map[string]string {
	t.Helper()
	if of != reflect.TypeFor[policy.Topic]() {
		return nil
	}
	o, all, p := response.NewBuffer(), make(map[string]json.RawMessage), policy.Builtin()
	o.Open()
	o.Members(&p)
	o.Close()
	require.NoError(t, json.Unmarshal(o.Bytes(), &all))
	found := make(map[string]string)
	for name, value := range all {
		if text := string(value); text != "null" {
			found[name] = strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(strings.Trim(text, `"`))
		}
	}
	return found
}

// markedDefault returns a default in backquotes if it is a value.
func markedDefault(unset, validate string) string {
	words, _ := tag(job.Tags(validate), "oneof")
	isValue := regexp.MustCompile(`^([0-9[{]|true$|false$)`).MatchString(unset)
	if isValue || unset != "" && slices.Contains(strings.Fields(words), unset) {
		return "`" + unset + "`"
	}
	return unset
}

// tag returns the value of a tag of the validator, and whether there is one with the name.
func tag(tags, name string) (value string, is bool) {
	m := regexp.MustCompile(`(?:^|,)` + name + `(?:=([^,]*))?(?:,|$)`).FindStringSubmatch(tags)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// rules returns the tags of the validator without those of no value, and those of elements.
func (f *field) rules() (own, ofElements string) {
	own, ofElements, _ = strings.Cut(f.validate, ",dive,")
	return regexp.MustCompile(`^(omitempty|omitnil),?`).ReplaceAllString(own, ""), ofElements
}

// rule returns the rule of the field's values as a sentence, with backquotes as in comments; empty: it has none.
func (f *field) rule() string {
	own, ofElements := f.rules()
	of, unit := f.Type, ""
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if f.Is("size") {
		unit = " B"
	}
	text := func(tags string, of reflect.Type) string {
		if tags == "target" { // its errors say which of its rules is violated
			return fmt.Sprintf("a URL of http or https with a host, at most %d B, without user, password and "+
				"fragment, its query escaped", job.MaxURL)
		}
		return regexp.MustCompile(`^must (be|have) | \([^)]*\)$`).ReplaceAllString(job.RuleOf(tags, of, unit), "")
	}
	var parts []string
	words, isChoice := tag(job.Tags(own), "oneof")
	if word, _, _ := strings.Cut(words, " "); own != "" && !(isChoice && strings.Contains(f.text, "`"+word+"`:")) {
		parts = append(parts, text(own, of))
	}
	if ofElements != "" {
		parts = append(parts, "each "+text(ofElements, of.Elem()))
	}
	if note := notes[of]; note != "" && len(parts) == 0 {
		parts = append(parts, note)
	}
	return sentence(marked(strings.Join(parts, ", ")))
}

// marked returns a rule with values and characters in backquotes.
func marked(rule string) string {
	rule = regexp.MustCompile(`\bof (.*0-9.*) and -`).ReplaceAllString(rule, "of `$1 -`")
	rule = regexp.MustCompile(`\b(beginning with|neither|nor) ([^ ,]+)`).ReplaceAllString(rule, "$1 `$2`")
	return regexp.MustCompile(`"[^"]+"`).ReplaceAllString(rule, "`$0`")
}

// sentence returns a text with a capital letter and a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// notes are the rules of types, which no tag has.
var notes = map[reflect.Type]string{
	reflect.TypeFor[policy.Rate]():       `such as "100/s" or "5/90s"`,
	reflect.TypeFor[map[string]string](): fmt.Sprintf("up to %d", job.MaxLabels),
	reflect.TypeFor[map[string][]string](): fmt.Sprintf("a value or a list of values by name, at most %d values and "+
		"%d KiB in total", job.MaxHeaderLines, job.MaxHeaders>>10),
	reflect.TypeFor[policy.Callback](): "a URL, or an object with one",
}

// join joins sentences that are not empty.
func join(sentences ...string) string {
	return strings.Join(strings.Fields(strings.Join(sentences, " ")), " ")
}

var spanType = reflect.TypeFor[time.Duration]()
