package manifest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ringback/ringback/client"
)

// Options are the settings of NewPlan.
type Options struct {
	// Prune removes resources with the mark of the files that the files do not have. A topic with lanes that stay gets
	// the defaults, but for deliver: the jobs that wait for consumers would be pushed.
	Prune bool
	// TakeOver changes resources that other files manage.
	TakeOver bool
}

// Action is what a change does.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Remove Action = "remove"
)

// A Change is a difference between the files and the server.
type Change struct {
	Action Action `json:"action"`
	ID
	Members []Member `json:"members,omitempty"`
	Lanes   []string `json:"lanes,omitempty"` // that are removed with their topic
	Place   string   `json:"file,omitempty"`  // with the line

	res      *resource
	body     []byte
	revision string // as it was read; empty: there was none
}

// A Plan has the changes that make the server be as the files say.
type Plan struct {
	Changes   []*Change
	Unchanged int
}

// NewPlan compares files with a server. Its error is an *Error with all faults, or that of a request.
func NewPlan(ctx context.Context, call Server, set *Set, o Options) (*Plan, error) {
	named := make(map[ID]bool)
	lanesOf := make(map[string]bool)
	topics := []string{} // never nil
	for _, r := range set.resources {
		named[r.id] = true
		switch r.id.Kind {
		case Topic:
			topics = append(topics, r.id.Name)
		case Lane:
			lanesOf[r.id.Topic] = true
		case Schedule:
		}
	}
	topics = append(topics, slices.Collect(maps.Keys(lanesOf))...)
	if o.Prune {
		topics = nil
	}
	have, err := fetch(ctx, call, func(topic string) bool { return o.Prune || lanesOf[topic] }, topics)
	if err != nil {
		return nil, err
	}
	resources := slices.Clone(set.resources)
	var documents []map[string]any
	for _, r := range resources {
		documents = append(documents, r.doc, have[r.id].doc)
	}
	if err := checkBodies(ctx, call, documents); err != nil {
		return nil, err
	}
	plan := new(Plan)
	pruned := func(id ID) bool { return o.Prune && !named[id] && have[id].managedBy == set.ManagedBy }
	for id := range have {
		if id.Kind == Lane && !pruned(id) {
			lanesOf[id.Topic] = true
		}
	}
	// The lanes of a topic would go with it, and those that begin with _ are Ringback's own.
	removed := func(topic ID) bool {
		return pruned(topic) && !lanesOf[topic.Name] && !strings.HasPrefix(topic.Name, "_")
	}
	lanesGone := make(map[string][]string)
	for id, s := range have {
		switch {
		case !pruned(id):
		case id.Kind == Topic && !removed(id):
			resources = append(resources, &resource{id: id, doc: map[string]any{
				"managed_by": nil,
				"deliver":    s.doc["deliver"],
			}, file: "(not in the files)", reset: true})
		// its topic removes it, after a look at the jobs
		case id.Kind == Lane && removed(ID{Kind: Topic, Name: id.Topic}):
			lanesGone[id.Topic] = append(lanesGone[id.Topic], id.Name)
		default:
			plan.Changes = append(plan.Changes, &Change{Action: Remove, ID: id, revision: s.revision})
		}
	}
	for _, c := range plan.Changes {
		if c.Kind == Topic {
			c.Lanes = slices.Sorted(slices.Values(lanesGone[c.Name]))
		}
	}
	changes, faults := make([]*Change, len(resources)), make([][]string, len(resources))
	var conflicts []string
	for i, r := range resources {
		by := have[r.id].managedBy
		mark := cmp.Or(set.ManagedBy, by)
		if by != "" && by != mark && !o.TakeOver {
			conflicts = append(conflicts, fmt.Sprintf("%s: %s is managed by %s: remove it there or here, or pass "+
				"--take-over", r.place(""), r.id, by))
			continue
		}
		changes[i] = compareStored(r, mark, have[r.id])
	}
	err = forEach(ctx, len(resources), func(ctx context.Context, i int) (err error) {
		if changes[i] != nil {
			faults[i], err = changes[i].check(ctx, call, have[resources[i].id])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if all := slices.Concat(faults...); len(all) > 0 {
		return nil, &Error{Refused, append(all, conflicts...)}
	}
	if len(conflicts) > 0 {
		return nil, &Error{Conflict, conflicts}
	}
	for _, c := range changes {
		if c == nil || c.revision != "" && len(c.Members) == 0 {
			plan.Unchanged++
			continue
		}
		plan.Changes = append(plan.Changes, c)
	}
	slices.SortFunc(plan.Changes, func(a, b *Change) int { return a.compare(b.ID) })
	return plan, nil
}

// compareStored returns the change of a resource, not checked yet; nil: it is stored as the file has it.
func compareStored(r *resource, mark string, s stored) *Change {
	want := maps.Clone(r.doc)
	if want == nil {
		want = make(map[string]any)
	}
	if _, ok := want["managed_by"]; !ok && mark != "" {
		want["managed_by"] = mark
	}
	r.doc = want
	if s.revision != "" && equal(settings(r.id.Kind, want), r.comparable(s.doc)) {
		return nil
	}
	body, err := json.Marshal(want)
	if err != nil {
		panic("manifest: values of files always have a JSON form: " + err.Error())
	}
	action := Update
	if s.revision == "" {
		action = Create
	}
	return &Change{Action: action, ID: r.id, Place: r.place(""), res: r, body: body, revision: s.revision}
}

// comparable returns the settings of an answer. Whether a schedule is paused counts only if the file says it.
func (r *resource) comparable(doc map[string]any) map[string]any {
	set := settings(r.id.Kind, doc)
	if r.doc["paused"] == nil {
		delete(set, "paused")
	}
	return set
}

// check finds the members that differ by a dry run, or the faults of the resource.
func (c *Change) check(ctx context.Context, call Server, s stored) (faults []string, err error) {
	answer, err := call(ctx, client.Request{Method: http.MethodPut, Path: c.path() + "?dry_run=true", Body: c.body})
	if err != nil {
		return c.faults(err)
	}
	doc, err := decode(answer)
	if err != nil {
		return nil, err
	}
	for _, pointer := range secretsIn("", c.res.doc, doc) {
		faults = append(faults, fmt.Sprintf("%s: %s: %s is a secret, which files do not have: set it by ringback %s, "+
			"and write %s or remove the line",
			c.res.place(pointer), c.ID, dotted(pointer),
			map[Kind]string{Schedule: "schedule put", Lane: "lane set", Topic: "topic set"}[c.Kind], redacted))
	}
	c.Members = differences("", c.res.comparable(s.doc), c.res.comparable(doc))
	return faults, nil
}

// faults returns the faults of a resource that the server has refused, each with the line of its field, or the error if
// it has none.
func (c *Change) faults(err error) ([]string, error) {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || !errors.Is(err, client.ErrInvalid) {
		return nil, err
	}
	var faults []string
	for _, e := range p.Errors {
		faults = append(faults, fmt.Sprintf("%s: %s: %s %s", c.res.place(e.Field), c.ID, dotted(e.Field), e.Detail))
	}
	if faults == nil {
		faults = append(faults, fmt.Sprintf("%s: %s: %s", c.res.place(""), c.ID, p.Detail))
	}
	return faults, nil
}

// dotted returns a JSON pointer with dots.
func dotted(pointer string) string {
	name := strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
}
