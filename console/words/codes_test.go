package words

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// spoken names the words for each enumeration of the contract by its place in it.
var spoken = map[string][]vocabulary{
	"components/schemas/Reason":                            {reasons},
	"components/schemas/Kind":                              {jobKinds},
	"components/schemas/AttemptSummary/properties/verdict": {verdicts},
	"components/schemas/StreamChange/properties/kind":      {changes},
	"components/schemas/JobEvent/properties/kind":          {changes},
	"components/schemas/Role":                              {roles},
	"paths/v1/stream/get/parameters/verdict/schema":        {verdicts},
}

// unspoken are names of enumerations that the console shows as they are, or not at all, with the reason.
var unspoken = map[string]string{
	"method": "methods of HTTP are words",
	"State":  "states of jobs are words",
	"state":  "those of work and schedules are words, and have pills",
	"components/schemas/AttemptSummary/properties/kind": "only of lost attempts it is said",
	"breaker": "open, half open and closed are words",
	"deliver": "the form of policies has words for them",
	"action":  "bulk work has verbs for them",
	"scope":   "the facts of an obstacle name it",
	"components/schemas/WaitingFor/properties/kind": "obstacles have facts",
	"result":                        "results of leases, which only their client sees",
	"Order":                         "a parameter of lists",
	"Include":                       "a parameter of lists",
	"Code":                          "problems have a title and a detail",
	"components/schemas/ErrorClass": "those of attempts have words; the form of a filter has the others",
	"overlap":                       "the form of schedules has words for them",
	"runs":                          "the form of schedules has words for them",
}

// byName names the words for enumerations whose members are named so wherever they occur.
var byName = map[string][]vocabulary{
	"outcome": {tickOutcomes},
}

// enumeration is one of the contract.
type enumeration struct {
	path  string
	codes []string
}

func (e enumeration) name() string {
	parts := strings.Split(strings.TrimSuffix(e.path, "/schema"), "/")
	return parts[len(parts)-1]
}

// vocabularies returns the words for an enumeration; nil: there are none.
func (e enumeration) vocabularies() []vocabulary {
	switch {
	case spoken[e.path] != nil:
		return spoken[e.path]
	case e.name() == "kind" && slices.Contains(e.codes, "hmac"):
		return []vocabulary{keyKinds}
	}
	return byName[e.name()]
}

// enumerations returns those of api/openapi.yaml.
func enumerations(t *testing.T) (all []enumeration) {
	t.Helper()
	text, err := os.ReadFile("../../api/openapi.yaml")
	require.NoError(t, err)
	var contract any
	require.NoError(t, yaml.Unmarshal(text, &contract))
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch node := node.(type) {
		case map[string]any:
			for key, below := range node {
				if codes, ok := below.([]any); ok && key == "enum" {
					e := enumeration{path: strings.TrimPrefix(path, "/")}
					for _, code := range codes {
						if text, ok := code.(string); ok {
							e.codes = append(e.codes, text)
						}
					}
					all = append(all, e)
					continue
				}
				walk(path+"/"+strings.Trim(key, "/"), below)
			}
		case []any:
			for i, below := range node {
				name := strconv.Itoa(i)
				if object, ok := below.(map[string]any); ok && object["name"] != nil {
					name, _ = object["name"].(string)
				}
				walk(path+"/"+name, below)
			}
		}
	}
	walk("", contract)
	return all
}

func TestCodes_OfTheContractHaveWords(t *testing.T) {
	used := make(map[string]bool)
	found := enumerations(t)
	require.Greater(t, len(found), 20)
	for _, e := range found {
		if unspoken[e.name()] != "" || unspoken[e.path] != "" {
			continue
		}
		used[e.path] = true
		all := e.vocabularies()
		require.NotEmpty(t, all, "the enumeration %s of the contract has no words", e.path)
		for _, v := range all {
			for _, code := range e.codes {
				require.NotEmpty(t, v[code], "%s: the code %s has no words", e.path, code)
			}
		}
	}
	for path := range spoken {
		require.True(t, used[path], "the contract has no enumeration %s", path)
	}
}

// codesBelow returns the codes of a table of docs/reasons.md, from the column.
func codesBelow(t *testing.T, heading string, column int) (codes []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/reasons.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	quoted := regexp.MustCompile("`([a-z_]+)`")
	for line := range strings.Lines(section) {
		_, row, _ := strings.Cut(line, "|")
		cells := strings.Split(row, "|")
		if !strings.HasPrefix(line, "|") || len(cells) <= column {
			continue
		}
		for _, match := range quoted.FindAllStringSubmatch(cells[column], -1) {
			if column > 0 || strings.HasPrefix(strings.TrimSpace(cells[0]), match[0]) {
				codes = append(codes, match[1])
			}
		}
	}
	return slices.DeleteFunc(codes, func(code string) bool { return code == "error_class" })
}

func TestCodes_OfTheDocsHaveWords(t *testing.T) {
	died := codesBelow(t, "Why a job died", 0)
	require.Len(t, died, len(reasons)-1) // and cancelled, of cancelled jobs
	for _, code := range died {
		require.NotEmpty(t, reasons[code], code)
	}
	classes := codesBelow(t, "Why an attempt got no answer", 1)
	require.Len(t, classes, len(errorClasses))
	for _, code := range classes {
		require.NotEmpty(t, errorClasses[code], code)
	}
}

func TestCodes_UnknownOnesPassThrough(t *testing.T) {
	for _, say := range []func(string) string{
		Reason, Verdict, ErrorClass, Change, JobKind, Role, TickOutcome, KeyKind,
	} {
		require.Equal(t, "of_a_later_version", say("of_a_later_version"))
		require.Empty(t, say(""))
	}
	require.Equal(t, "all retries are used up", Reason("exhausted"))
}

func TestCodes_WordsFitIntoSentences(t *testing.T) {
	for _, v := range []vocabulary{
		reasons, verdicts, errorClasses, changes, jobKinds, roles, tickOutcomes, keyKinds,
	} {
		for code, text := range v {
			require.NotRegexp(t, `[.?!\s]$|^\s|  `, text, code)
		}
	}
}
