package documents

import "github.com/ringback/ringback/policy"

// NamedURL is a URL of a policy and its field.
type NamedURL struct{ Field, URL string }

// URLs returns the URLs of a policy, always the same fields; empty: none.
func URLs(t policy.Topic) []NamedURL {
	urls := []NamedURL{
		{"/url", t.URL},
		{Field: "/on_delivered/url"},
		{Field: "/on_dead/url"},
		{Field: "/on_backlog/url"},
	}
	if t.OnDelivered != nil {
		urls[1].URL = t.OnDelivered.URL
	}
	if t.OnDead != nil {
		urls[2].URL = t.OnDead.URL
	}
	if t.OnBacklog != nil {
		urls[3].URL = t.OnBacklog.URL
	}
	return urls
}
