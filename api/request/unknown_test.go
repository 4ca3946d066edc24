package request

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/response"
)

func TestUnknownFields_AreAnsweredWithTheClosestName(t *testing.T) {
	for text, want := range map[string]string{
		`{"url": "http://a.example/", "runAt": 1}`:            "is not a field of a job; did you mean run_at?",
		`{"url": "http://a.example/", "on_dead": {"uri": 1}}`: "is not a field of a callback; did you mean url?",
		`{"url": "http://a.example/", "color": 1}`:            "is not a field of a job",
	} {
		_, p := DecodeJob([]byte(text), nil, time.Now(), 1<<20)
		require.Contains(t, details(p), want)
	}
	many := `{"a1": 1, "a2": 1, "a3": 1, "a4": 1, "a5": 1, "a6": 1, "a7": 1, "a8": 1, "runAt": 1}`
	_, p := DecodeJob([]byte(many), nil, time.Now(), 1<<20)
	require.Contains(t, details(p), "is not a field of a job", "what is found in many objects costs little")
	require.NotContains(t, details(p), "is not a field of a job; did you mean run_at?")
	_, p = DecodeEvent([]byte(`{"topic": "a", "typ": "order.paid"}`), nil, time.Now(), 1<<20)
	require.Contains(t, details(p), "is not a field of an event; did you mean type?")
	_, _, p = DecodeBatch([]byte(`{"job": []}`))
	require.Contains(t, details(p), "is not a field of a batch; did you mean jobs?")
}

func details(p *response.Problem) (all []string) {
	for _, e := range p.Fields {
		all = append(all, e.Detail)
	}
	return all
}
