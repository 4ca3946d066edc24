package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/ringback/ringback/client"
)

// Server makes a request and returns its answer. An answer that is an error is a *client.Problem.
type Server func(ctx context.Context, r client.Request) (json.RawMessage, error)

// get reads an object of the server.
func (call Server) get(ctx context.Context, path string) (map[string]any, error) {
	answer, err := call(ctx, client.Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return nil, err
	}
	return decode(answer)
}

// inFlight is the number of requests at once.
const inFlight = 8

// forEach calls do for 0 to n-1, a few at once, until one fails. It returns the first error.
func forEach(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, inFlight)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			if err := do(ctx, i); err != nil {
				cancel(err)
			}
			<-slots
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// A stored resource is what the server has.
type stored struct {
	doc       map[string]any
	revision  string // empty: none
	managedBy string
}

// state is what the server has.
type state map[ID]stored

// add adds an item of a list, if it has settings.
func (s state) add(id ID, doc map[string]any) {
	revision, _ := doc["revision"].(json.Number)
	if revision == "" || revision == "0" {
		return
	}
	mark, _ := doc["managed_by"].(string)
	s[id] = stored{doc, revision.String(), mark}
}

// fetch reads the topics of a server, the lanes of those that wanted accepts, and the schedules.
func fetch(ctx context.Context, call Server, lanesOf func(topic string) bool, topics []string) (state, error) {
	found := make(state)
	text := func(doc map[string]any, name string) string { value, _ := doc[name].(string); return value }
	all := make(map[string]bool)
	for _, topic := range topics {
		all[topic] = true
	}
	err := call.list(ctx, "/v1/topics?defaults=false&limit=500", func(doc map[string]any) {
		all[text(doc, "topic")] = true
		found.add(ID{Kind: Topic, Name: text(doc, "topic")}, doc)
	})
	if errors.Is(err, client.ErrForbidden) && topics != nil { // the token is restricted to topics
		err = fetchTopics(ctx, call, topics, found)
	}
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(topic string) bool { return !lanesOf(topic) })
	err = forEach(ctx, len(names), func(ctx context.Context, i int) error {
		lanes := ID{Kind: Topic, Name: names[i]}.path() + "/lanes?limit=500"
		err := call.list(ctx, lanes, func(doc map[string]any) {
			mu.Lock()
			defer mu.Unlock()
			found.add(ID{Lane, names[i], text(doc, "lane")}, doc)
		})
		if errors.Is(err, client.ErrNotFound) { // it has neither settings nor jobs
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, call.list(ctx, "/v1/schedules?limit=100", func(doc map[string]any) {
		found.add(ID{Kind: Schedule, Name: text(doc, "name")}, doc)
	})
}

// fetchTopics reads topics by name.
func fetchTopics(ctx context.Context, call Server, topics []string, found state) error {
	for _, name := range topics {
		id := ID{Kind: Topic, Name: name}
		doc, err := call.get(ctx, id.path()+"?defaults=false")
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return err
		}
		found.add(id, doc)
	}
	return nil
}

// list calls add for the items of a list, page after page. The path has a query.
func (call Server) list(ctx context.Context, path string, add func(map[string]any)) error {
	for next := path; ; {
		page, err := call.get(ctx, next)
		if err != nil {
			return err
		}
		items, ok := page["items"].([]any)
		if !ok {
			list, _, _ := strings.Cut(path, "?")
			return fmt.Errorf("the answer of %s is not a list", list)
		}
		for _, item := range items {
			if doc, ok := item.(map[string]any); ok {
				add(doc)
			}
		}
		cursor, _ := page["next_cursor"].(string)
		if cursor == "" {
			return nil
		}
		next = path + "&cursor=" + url.QueryEscape(cursor)
	}
}
