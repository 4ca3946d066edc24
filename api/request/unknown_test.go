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
	_, p := DecodeEvent([]byte(`{"topic": "a", "typ": "order.paid"}`), nil, time.Now(), 1<<20)
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
