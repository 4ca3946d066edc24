package policy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSubscription_Matches(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"order.paid", []string{"order.paid"}, []string{"order", "order.paid.late", "order.paid2", "Order.paid"}},
		{"order.*", []string{"order.paid", "order.x"}, []string{"order", "order.paid.late", "orders.paid"}},
		{"*.paid", []string{"order.paid"}, []string{"paid", "a.b.paid"}},
		{"order.**", []string{"order.paid", "order.paid.late"}, []string{"order", "orders.paid"}},
		{"order.*.**", []string{"order.paid.late", "order.a.b.c"}, []string{"order.paid"}},
		{"*", []string{"order", "order.paid", "a.b.c"}, nil},
		{"**", []string{"order", "order.paid"}, nil},
		{"*.*", []string{"order.paid"}, []string{"order", "a.b.c"}},
	} {
		require.True(t, IsEventPattern(c.pattern), c.pattern)
		s := Subscription{Subscribe: []string{"another.one", c.pattern}}
		for _, name := range c.yes {
			require.True(t, s.Matches(name, nil), "%s %s", c.pattern, name)
		}
		for _, name := range c.no {
			require.False(t, s.Matches(name, nil), "%s %s", c.pattern, name)
		}
	}
}

func TestSubscription_MatchesLabels(t *testing.T) {
	s := Subscription{Subscribe: []string{"*"}, SubscribeLabels: map[string]string{"region": "eu", "tier": ""}}
	require.True(t, s.Matches("a", map[string]string{"region": "eu", "tier": "", "more": "x"}))
	for _, labels := range []map[string]string{nil, {"region": "eu"}, {"region": "us", "tier": ""}} {
		require.False(t, s.Matches("a", labels), labels)
	}
	require.False(t, Subscription{SubscribeLabels: s.SubscribeLabels}.Matches("a", s.SubscribeLabels), "no pattern")
}

func TestEventType_Forms(t *testing.T) {
	long := strings.Repeat("a", MaxEventType)
	for _, good := range []string{"a", "order.paid", "A-1_b.c", long} {
		require.True(t, IsEventType(good), good)
		require.True(t, IsEventPattern(good), good)
	}
	for _, bad := range []string{"", ".", "a.", ".a", "a..b", "a b", "ä", "a/b", long + "a"} {
		require.False(t, IsEventType(bad), bad)
		require.False(t, IsEventPattern(bad), bad)
	}
	for _, pattern := range []string{"*", "**", "a.*", "*.b", "a.**"} {
		require.False(t, IsEventType(pattern), pattern)
	}
	for _, bad := range []string{"a*", "**.a", "a.**.b", "***", "*a.b"} {
		require.False(t, IsEventPattern(bad), bad)
	}
}
