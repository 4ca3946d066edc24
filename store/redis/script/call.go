package script

import "github.com/ringback/ringback/store/redis/layout"

// A Call is a script with its keys and arguments.
type Call struct {
	Script *Script
	Keys   []string
	Args   []any
}

// NewCall lays out the keys and arguments of a script that includes keys.lua. replyKey is where its reply is kept for repeats;
// calls without one pass a key that does not exist. Queues must not be nil; their topics need not be in topics. extra is how
// many arguments will be added.
func (r *Runner) NewCall(
	k *layout.Keys, script *Script, replyKey string, queues []*layout.Queue, topics []*layout.Topic, extra int,
) *Call {
	all := make([]*layout.Topic, 0, len(topics)+1)
	position := make(map[*layout.Topic]int, len(topics)+1)
	index := func(t *layout.Topic) int {
		at, ok := position[t]
		if !ok {
			all = append(all, t)
			at = len(all)
			position[t] = at
		}
		return at
	}
	for _, t := range topics {
		index(t)
	}
	keys := make([]string, 0, 21+3*len(queues)+5+2)
	keys = append(append(keys, k.Common...), replyKey)
	args := make([]any, 3, 3+3*len(queues)+1+extra)
	for _, q := range queues {
		keys = append(keys, q.Due, q.Ready, q.Held)
		args = append(args, q.Number, index(q.TopicKeys), q.Name)
	}
	for _, t := range all {
		keys = append(keys, t.Stats, t.Done, t.Dead, t.Cancelled, t.Open)
		args = append(args, t.Name)
	}
	args[0], args[1], args[2] = len(queues), len(all), r.Defaults
	return &Call{Script: script, Keys: keys, Args: args}
}

// Add appends arguments.
func (c *Call) Add(args ...any) { c.Args = append(c.Args, args...) }
