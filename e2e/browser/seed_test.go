package browser

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/testkit"
)

// hostile is a text that would show a dialog if it became part of a page.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>`

// longName is the longest name of a topic that has no place to break.
var longName = "long." + strings.Repeat("m", 59)

// seed fills a service: topics that flow, fail and are paused, jobs in every state, schedules, work, tokens and a
// namespace. The note is in what people and programs write: bodies and reasons of pauses.
func (s *service) seed(t *testing.T, note string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.MustCome)
	defer cancel()
	good, down, slow := "http://"+s.inbox+"/", "http://"+s.inbox+"/status/503", "http://"+s.inbox+"/slow/2m"
	topics := map[string]client.Policy{
		"shop.orders": {
			Ladder:          []time.Duration{15 * time.Second, 3 * time.Minute, 10 * time.Minute},
			LaneConcurrency: 8,
		},
		"shop.refunds": {
			Ladder:  []time.Duration{time.Hour},
			Breaker: &client.Breaker{Failures: new(2), Open: time.Hour},
		},
		"mail.receipts": {URL: good},
		longName:        {},
	}
	for name, policy := range topics {
		_, err := s.api.PutTopic(ctx, name, policy)
		require.NoError(t, err)
	}
	_, err := s.api.PauseTopic(ctx, "mail.receipts", "the provider migrates, ask Mia"+note)
	require.NoError(t, err)
	_, err = s.api.AddSecret(ctx, "shop.orders", "", client.NewSecret{})
	require.NoError(t, err)
	_, err = s.api.PutLane(ctx, "shop.orders", "eu.pay.example.com:443",
		client.LaneSettings{LaneRate: "100/s", URL: good})
	require.NoError(t, err)

	body := map[string]any{"order": "4711", "amount": 12, "note": "by the door" + note}
	jobs := []client.Job{
		{ID: "delivered-1", Topic: "shop.orders", URL: good, Body: body, Labels: map[string]string{"customer": "mia"}},
		{ID: "delivered-2", Topic: "shop.orders", Lane: "eu.pay.example.com:443", URL: good, Body: body},
		{
			ID: "later-1", Topic: "shop.orders", URL: good, Body: body, Delay: time.Hour,
			Labels: map[string]string{"note": "a"},
		},
		{
			ID: "later-2", Topic: longName, Lane: strings.Repeat("n", 64),
			URL: good + strings.Repeat("o", 300), Delay: time.Hour,
		},
		{ID: "running-1", Topic: "shop.orders", Lane: "slow.example.com:443", URL: slow, Timeout: 10 * time.Minute},
		{ID: "retried-1", Topic: "shop.orders", Lane: "shop.example.com:443", URL: down, Body: body},
		{ID: "paused-1", Topic: "mail.receipts", Body: client.Text("Thank you for your order" + note)},
		{ID: "cancelled-1", Topic: "shop.orders", URL: good, Delay: time.Hour},
		{ID: "refund-1", Topic: "shop.refunds", Lane: "bank.example.com:443", URL: down},
		{ID: "refund-2", Topic: "shop.refunds", Lane: "bank.example.com:443", URL: down},
		{ID: "refund-3", Topic: "shop.refunds", Lane: "bank.example.com:443", URL: down},
	}
	for _, id := range []string{"dead-1", "dead-2", "dead-3", "dead-4"} {
		jobs = append(jobs, client.Job{
			ID: id, Topic: "shop.orders", Lane: "gone.example.com:443",
			URL: "http://" + s.inbox + "/status/410", Retries: new(0), Body: body,
		})
	}
	for _, j := range jobs {
		_, err := s.api.Register(ctx, j)
		require.NoError(t, err)
	}
	_, err = s.api.Cancel(ctx, "cancelled-1")
	require.NoError(t, err)
	job := &client.ScheduleJob{Topic: "shop.orders", URL: good, Body: body}
	for name, o := range map[string]client.ScheduleRequest{
		"reconcile": {Cron: "0 8 * * MON-FRI", Timezone: "Europe/Berlin", Job: job},
		"heartbeat": {Every: 15 * time.Minute, Job: job},
		"dense":     {Cron: "* * * * *", Job: job},
	} {
		_, err := s.api.PutSchedule(ctx, name, o)
		require.NoError(t, err)
	}
	_, err = s.api.PauseSchedule(ctx, "heartbeat", "the shop is closed"+note)
	require.NoError(t, err)
	_, err = s.api.PutNamespace(ctx, "shop", client.NamespaceRequest{})
	require.NoError(t, err)
	token, err := s.api.CreateToken(ctx, client.TokenRequest{Name: "mia", Role: "operate"})
	require.NoError(t, err)
	s.token = token.ID
	require.Eventually(t, func() bool {
		stats, err := s.api.Stats(ctx)
		return err == nil && stats.Totals.Dead == 4 && stats.Totals.Delivered >= 2 && stats.Totals.BreakersOpen >= 1
	}, testkit.MustCome, 20*time.Millisecond, "the jobs do not reach their states")
}

// reviveAll starts work that takes minutes, and returns its id.
func (s *service) reviveAll(t *testing.T) string {
	t.Helper()
	work, err := s.api.StartWork(t.Context(), client.WorkOrder{
		Action: client.ActionRevive,
		Where:  client.Where{Topic: "shop.orders", Lane: "gone.example.com:443"}, Rate: "1/h",
	})
	require.NoError(t, err)
	return work.ID
}
