package policyform

import (
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

// Lane is the form of a lane's settings. Where a field is empty, the topic's holds.
var Lane = newLaneForm()

func newLaneForm() *Form[client.LaneSettings] {
	type l = client.LaneSettings
	f := &Form[l]{
		allocate: func(s l) l { return s },
		trim:     func(*l) {},
		nulls:    func(s *l, _ string) *[]string { return &s.Null },
		fields: []field[l]{
			textField(web.Field{Name: "url", Label: "URL", Hint: "For jobs that have none."},
				func(s *l) *string { return &s.URL }),
			headersField(web.Field{Name: "headers", Label: "Headers", Hint: "Added to the topic's. " +
				headersHint, Placeholder: "X-Customer: 42"}, func(s *l) *client.Headers { return &s.Headers }),
			positiveField(web.Field{Name: "lane_concurrency", Label: "Attempts at a " +
				"time", Hint: "Over all processes, 1 to 10000."}, func(s *l) *int { return &s.LaneConcurrency }),
			textField(web.Field{Name: "lane_rate", Label: "Rate", Hint: "Starts of attempts, such as 5/s or 5/90s."},
				func(s *l) *string { return &s.LaneRate }),
			yesField(web.Field{Name: "ordered", Label: "Ordered", Hint: "One job at a time, in the order of their " +
				"registration."}, "as the topic", func(s *l) **bool { return &s.Ordered }),
			textField(web.Field{Name: "managed_by", Label: "Managed by", Hint: "The files that set the lane: " +
				"ringback apply writes it. Empty: none."}, func(s *l) *string { return &s.ManagedBy }),
		},
	}
	f.groups = []Group{{Title: "Settings", names: f.Names()}}
	return f
}

// LaneDefaults returns what holds in a lane without settings: its topic's effective policy.
func LaneDefaults(topic client.Policy) client.LaneSettings {
	return client.LaneSettings{
		URL: topic.URL, LaneConcurrency: topic.LaneConcurrency, LaneRate: topic.LaneRate, Ordered: topic.Ordered,
	}
}
