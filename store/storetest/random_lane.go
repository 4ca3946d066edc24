package storetest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// revision is that of a lane's settings in both; zero: removed.
type revision struct{ engine, model int64 }

// putLane changes or removes a lane's settings.
func (p *engineAndModel) putLane(t *rapid.T) {
	p.nextInstant()
	q := rapid.SampledFrom(p.queues).Draw(t, "queue")
	var settings policy.Lane
	switch rapid.IntRange(0, 5).Draw(t, "settings") {
	case 0: // removed
	case 1:
		settings.Paused = rapid.Bool().Draw(t, "paused")
		settings.URL = "http://lane.example/"
	case 2:
		settings.LaneConcurrency = rapid.IntRange(1, 3).Draw(t, "limit")
	case 3:
		settings.Headers = map[string][]string{"X-Lane": {"1"}}
		settings.Secrets = []policy.Secret{{ID: "one", Value: "whsec_one"}}
	case 4:
		if q.Topic == "orders" && p.rate.Limited() {
			settings.LaneRate = policy.Rate{Starts: rapid.IntRange(1, 5).Draw(t, "starts"), Per: p.rate.Per}
		}
	case 5:
		settings.Ordered = true
	}
	mine, theirs := store.Lane{Queue: q, Settings: settings}, store.Lane{Queue: q, Settings: settings}
	if known := p.lanes[q]; len(known) > 0 && rapid.Bool().Draw(t, "revision") {
		one := known[max(0, len(known)-1-rapid.IntRange(0, 2).Draw(t, "one of before"))]
		mine.Revision, theirs.Revision = one.engine, one.model
	}
	got, err := twice(p, "put a lane", func(token store.Token) (store.Lane, error) {
		return store.PutLane(p.ctx, p.s.shard(), token, mine)
	}, func(first, second store.Lane) error {
		if first.Revision != second.Revision {
			return fmt.Errorf("revision %d, then %d", first.Revision, second.Revision)
		}
		return nil
	})
	wanted, wantedErr := store.PutLane(p.ctx, p.model.shards[0], store.NewToken(), theirs)
	if !sameError(wantedErr, err) {
		p.Fatalf("put lane %s: %v, want %v", q, err, wantedErr)
	}
	if err != nil {
		return
	}
	if settings.IsZero() {
		got.Revision, wanted.Revision = 0, 0
	}
	p.lanes[q] = append(p.lanes[q], revision{got.Revision, wanted.Revision})
	p.sameSettings(wanted, got, "put a lane")
}

// laneOf decodes the settings that a claim reports.
func (p *engineAndModel) laneOf(doc *store.Document) store.Lane {
	lane, err := doc.Lane()
	p.must(err, "decode settings")
	return lane
}

// sameSettings compares a lane. The numbers of revisions may differ, but not whether there is one.
func (p *engineAndModel) sameSettings(wanted, got store.Lane, what string) {
	for _, h := range []*map[string][]string{&wanted.Settings.Headers, &got.Settings.Headers} {
		if len(*h) == 0 {
			*h = nil
		}
	}
	for _, secrets := range []*[]policy.Secret{&wanted.Settings.Secrets, &got.Settings.Secrets} {
		if len(*secrets) == 0 {
			*secrets = nil
		}
	}
	if wanted.Queue != got.Queue || !reflect.DeepEqual(wanted.Settings, got.Settings) ||
		(wanted.Revision == 0) != (got.Revision == 0) {
		p.Fatalf("%s: settings %+v, want %+v", what, got, wanted)
	}
}

// samePutLanes compares the settings of a topic's lanes as GetLanes and ListLanes return them.
func (p *engineAndModel) samePutLanes(topic string) {
	wanted, err := store.ListLanes(p.ctx, p.model.shards[0], p.namespace, topic, "", 10)
	p.must(err, "list the model's settings")
	got, err := store.ListLanes(p.ctx, p.s.shard(), p.namespace, topic, "", 10)
	p.must(err, "list settings")
	if len(wanted) != len(got) {
		p.Fatalf("settings of the lanes of %s: %+v, want %+v", topic, got, wanted)
	}
	for i := range wanted {
		p.sameSettings(wanted[i], got[i], "list")
	}
	wanted, err = store.GetLanes(p.ctx, p.model.shards[0], p.queues)
	p.must(err, "read the model's settings")
	got, err = store.GetLanes(p.ctx, p.s.shard(), p.queues)
	p.must(err, "read settings")
	for i := range wanted {
		p.sameSettings(wanted[i], got[i], "read")
	}
}

// topicRate returns the rate of the topics.
func (p *engineAndModel) topicRate() policy.Rate {
	return policy.Rate{Starts: 5, Per: cmp.Or(p.rate.Per, long+time.Millisecond)}
}

// permit requests starts of a topic.
func (p *engineAndModel) permit(t *rapid.T) {
	p.nextInstant()
	ask := store.PermitRequest{
		Namespace: p.namespace, Topic: "orders", Rate: p.topicRate(), Starts: rapid.IntRange(0, 4).Draw(t, "starts"),
		Slack: rapid.SampledFrom([]time.Duration{0, 4 * time.Second}).Draw(t, "slack"),
	}
	asks := rapid.IntRange(1, 2).Draw(t, "asks")
	got, err := twice(p, "permit", func(token store.Token) ([]store.Permit, error) {
		return p.s.Store.Shards()[p.s.router.ShardOfTopic(p.namespace, ask.Topic)].Permit(p.ctx, token,
			slices.Repeat([]store.PermitRequest{ask}, asks))
	}, func(first, second []store.Permit) error {
		if !slices.Equal(first, second) {
			return fmt.Errorf("%+v, then %+v", first, second)
		}
		return nil
	})
	p.must(err, "permit")
	wanted, err := p.model.shards[0].Permit(p.ctx, store.NewToken(), slices.Repeat([]store.PermitRequest{ask}, asks))
	p.must(err, "permit by the model")
	for i, w := range wanted {
		g := got[i]
		if w.Starts != g.Starts || (w.Next == 0) != (g.Next == 0) || (w.Next-g.Next).Abs() > p.slack() ||
			w.At.Sub(g.At).Abs() > p.slack() {
			p.Fatalf("permit %d: %+v, want %+v", i, g, w)
		}
	}
}

// alarm raises or clears the alarm of a topic of the sequence's shard.
func (p *engineAndModel) alarm(t *rapid.T) {
	p.nextInstant()
	a := store.Alarm{Namespace: p.namespace, Raised: rapid.Bool().Draw(t, "raised")}
	for i := 0; a.Topic == ""; i++ {
		if name := fmt.Sprintf("alarm-%d", i); p.s.router.ShardOfTopic(p.namespace, name) == p.s.shardNumber {
			a.Topic = name
		}
	}
	if rapid.Bool().Draw(t, "outbox") {
		a.Outbox = []store.NewJob{p.outboxJob()}
	}
	got, err := twice(p, "alarm", func(token store.Token) (bool, error) {
		return p.s.shard().Alarm(p.ctx, token, a)
	}, func(first, second bool) error {
		if first != second {
			return fmt.Errorf("changed %t, then %t", first, second)
		}
		return nil
	})
	p.must(err, "alarm")
	wanted, err := p.model.shards[0].Alarm(p.ctx, store.NewToken(), a)
	p.must(err, "alarm in the model")
	if wanted != got {
		p.Fatalf("alarm: changed %t, want %t", got, wanted)
	}
}
