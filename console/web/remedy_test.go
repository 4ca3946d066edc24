package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

func TestRemedy_IsWhatTheReaderMayDo(t *testing.T) {
	post := func(to, text string) *Remedy { return &Remedy{Link{to, text}, true} }
	link := func(to, text string) *Remedy { return &Remedy{Link{to, text}, false} }
	topic := func(action string) *client.Remedy { return &client.Remedy{Action: action, Topic: "t"} }
	lane := func(action string) *client.Remedy { return &client.Remedy{Action: action, Topic: "t", Lane: "a/b"} }
	for _, c := range []struct {
		role   string
		remedy *client.Remedy
		want   *Remedy
	}{
		{"admin", nil, nil},
		{"operate", topic("resume"), post("./topics/t/resume", "Resume topic t")},
		{"operate", lane("resume"), post("./topics/t/lanes/a%2Fb/resume", "Resume lane a/b")},
		{"read", topic("resume"), nil},
		{"read", lane("set"), link("./topics/t/lanes/a%2Fb", "Settings of lane a/b")},
		{"read", topic("put"), link("./topics/t", "Settings of topic t")},
		{"publish", topic("set"), nil},
		{"read", &client.Remedy{Action: "run", Topic: "t", ID: "j"}, link("./jobs/j", "Open job j")},
		{"admin", topic("lease"), nil},
		{"admin", topic("action_of_tomorrow"), nil},
	} {
		v := &Visit{Base: ".", Who: &client.Principal{Role: c.role}}
		require.Equal(t, c.want, v.Remedy(c.remedy), c)
		v.Who.Topics = []string{"other"}
		if got := v.Remedy(c.remedy); got != nil {
			require.False(t, got.Posts, c)
		}
	}
}
