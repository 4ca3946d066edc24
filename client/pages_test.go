package client_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

// pageFunc returns the names of the items of a page, and its NextCursor.
type pageFunc func(ctx context.Context, o client.PageOptions) ([]string, string, error)

// namedPages returns the pageFunc of a method.
func namedPages[
	T any,
](read func(context.Context, client.PageOptions) (*client.Page[T], error), name func(*T) string) pageFunc {
	return func(ctx context.Context, o client.PageOptions) ([]string, string, error) {
		p, err := read(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return names(p.Items, name), p.NextCursor, nil
	}
}

func names[T any](items []T, name func(*T) string) (all []string) {
	for i := range items {
		all = append(all, name(&items[i]))
	}
	return all
}

// nameAll returns the names of a list.
func nameAll[T any](t *testing.T, items iter.Seq2[*T, error], name func(*T) string) (all []string) {
	t.Helper()
	for item, err := range items {
		require.NoError(t, err)
		all = append(all, name(item))
	}
	return all
}

func TestPages_AreTheParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, c := t.Context(), newServer(t).Client()
		for i := range 5 {
			topic := fmt.Sprintf("t%d", i)
			_, err := c.PutTopic(ctx, topic, client.Policy{Timeout: time.Second})
			require.NoError(t, err)
			_, err = c.PutLane(ctx, "t0", fmt.Sprintf("l%d", i), client.LaneSettings{LaneConcurrency: 1})
			require.NoError(t, err)
			for _, topic := range []string{topic, "t0"} {
				_, err = c.Register(ctx, client.Job{
					Topic: topic, Lane: fmt.Sprintf("l%d", i),
					URL: "https://shop.example/", Delay: time.Hour,
				})
				require.NoError(t, err)
			}
			_, err = c.PutSchedule(ctx, fmt.Sprintf("s%d", i),
				client.ScheduleRequest{Every: time.Hour, Job: &client.ScheduleJob{URL: "https://shop.example/"}})
			require.NoError(t, err)
			_, err = c.StartWork(ctx, client.WorkOrder{Action: client.ActionRun, Where: client.Where{Topic: "other"}})
			require.NoError(t, err)
		}
		for range 3 {
			_, err := c.AddSecret(ctx, "t0", "", client.NewSecret{})
			require.NoError(t, err)
		}
		time.Sleep(10 * time.Second) // the work has ended, so that its order stays
		topic := func(i *client.Topic) string { return i.Name }
		lane := func(i *client.Lane) string { return i.Name }
		ofTopic := func(i *client.TopicCounts) string { return i.Topic }
		ofLane := func(i *client.LaneCounts) string { return i.Lane }
		schedule := func(i *client.Schedule) string { return i.Name }
		work := func(i *client.Work) string { return i.ID }
		secret := func(i *client.Secret) string { return i.ID }
		for name, tt := range map[string]struct {
			all  []string
			page pageFunc
		}{
			"topics": {nameAll(t, c.Topics(ctx), topic), namedPages(c.TopicsPage, topic)},
			"lanes": {nameAll(t, c.Lanes(ctx, "t0"), lane), namedPages(
				func(ctx context.Context, o client.PageOptions) (*client.Page[client.Lane], error) {
					return c.LanesPage(ctx, "t0", o)
				}, lane,
			)},
			"schedules": {nameAll(t, c.Schedules(ctx), schedule), namedPages(c.SchedulesPage, schedule)},
			"work":      {nameAll(t, c.Works(ctx), work), namedPages(c.WorkPage, work)},
			"secrets": {nameAll(t, c.Secrets(ctx, "t0", ""), secret), namedPages(
				func(ctx context.Context, o client.PageOptions) (*client.Page[client.Secret], error) {
					return c.SecretsPage(ctx, "t0", "", o)
				}, secret,
			)},
			"stats": {nameAll(t, c.StatsByTopic(ctx), ofTopic), func(
				ctx context.Context, o client.PageOptions,
			) ([]string, string, error) {
				s, err := c.StatsPage(ctx, o)
				require.NoError(t, err)
				require.EqualValues(t, 10, s.Totals.Scheduled)
				return names(s.Items, ofTopic), s.NextCursor, nil
			}},
			"stats of a topic": {nameAll(t, c.LaneStats(ctx, "t0"), ofLane), func(
				ctx context.Context, o client.PageOptions,
			) ([]string, string, error) {
				s, err := c.TopicStatsPage(ctx, "t0", o)
				require.NoError(t, err)
				require.EqualValues(t, 6, s.Scheduled)
				return names(s.Items, ofLane), s.NextCursor, nil
			}},
		} {
			require.GreaterOrEqual(t, len(tt.all), 3, name)
			var got []string
			for o := (client.PageOptions{Limit: 2}); ; {
				page, next, err := tt.page(ctx, o)
				require.NoError(t, err, name)
				require.LessOrEqual(t, len(page), 2, name)
				got = append(got, page...)
				if o.Cursor = next; next == "" {
					break
				}
			}
			require.Equal(t, tt.all, got, name)
		}
	})
}

func TestPages_DeadPageContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, c := t.Context(), newServer(t).Client()
		_, err := c.PutTopic(ctx, "pdf", client.Policy{Deliver: "pull"})
		require.NoError(t, err)
		for range 3 {
			_, err := c.Register(ctx, client.Job{Topic: "pdf", ExpiresIn: time.Second})
			require.NoError(t, err)
		}
		time.Sleep(time.Minute)
		first, err := c.DeadPage(ctx, client.Query{Limit: 2})
		require.NoError(t, err)
		require.Len(t, first.Items, 2)
		second, err := c.DeadPage(ctx, client.Query{Limit: 2, Cursor: first.NextCursor})
		require.NoError(t, err)
		require.Len(t, second.Items, 1)
		require.Equal(t, client.Dead, second.Items[0].State)
		require.Empty(t, second.NextCursor)
	})
}
