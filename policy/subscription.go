package policy

import (
	"slices"
	"strings"
)

// Bounds of subscriptions and of the types of events.
const (
	// MaxSubscribe bounds the patterns of a lane.
	MaxSubscribe = 100
	// MaxEventType bounds the type of an event, and a pattern of types.
	MaxEventType = 128
)

// A Subscription selects events for a lane.
type Subscription struct {
	// Subscribe lists patterns of the types of events that the lane gets. A type is text between full stops:
	// `order.paid`. In a pattern `*` stands for one text, and `**` at the end for one or more; a lone `*` is every
	// type. Default: none.
	Subscribe []string `json:"subscribe,omitempty" api:"subscribe" validate:"omitempty,max=100,dive,event_pattern"`
	// SubscribeLabels are labels that an event must have, too. Default: none.
	SubscribeLabels map[string]string `json:"subscribe_labels,omitempty" api:"subscribe_labels"`
}

// IsZero reports whether it selects nothing and says nothing.
func (s Subscription) IsZero() bool { return len(s.Subscribe) == 0 && len(s.SubscribeLabels) == 0 }

// Matches reports whether it selects an event.
func (s Subscription) Matches(eventType string, labels map[string]string) bool {
	for key, value := range s.SubscribeLabels {
		if has, ok := labels[key]; !ok || has != value {
			return false
		}
	}
	return s.MatchesType(eventType)
}

// MatchesType reports whether it selects events of a type, with the labels that it asks for.
func (s Subscription) MatchesType(eventType string) bool {
	return slices.ContainsFunc(s.Subscribe, func(pattern string) bool { return matchesType(pattern, eventType) })
}

// The parts of patterns that are no text.
const anyOne, anyMore = "*", "**"

func matchesType(pattern, eventType string) bool {
	if pattern == anyOne {
		return true
	}
	for pattern != "" {
		var want, has string
		want, pattern, _ = strings.Cut(pattern, ".")
		if want == anyMore {
			return eventType != ""
		}
		has, eventType, _ = strings.Cut(eventType, ".")
		if has == "" || want != anyOne && want != has {
			return false
		}
	}
	return eventType == ""
}

// IsEventType reports whether a text is the type of an event.
func IsEventType(text string) bool {
	return len(text) <= MaxEventType && !slices.ContainsFunc(strings.Split(text, "."), isNoSegment)
}

// IsEventPattern reports whether a text is a pattern of types.
func IsEventPattern(text string) bool {
	parts := strings.Split(text, ".")
	last := len(parts) - 1
	if parts[last] == anyMore {
		parts = parts[:last]
	}
	return len(text) <= MaxEventType &&
		!slices.ContainsFunc(parts, func(s string) bool { return s != anyOne && isNoSegment(s) })
}

func isNoSegment(text string) bool {
	return text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
}
