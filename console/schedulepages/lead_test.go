package schedulepages

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

// scheduled returns a schedule whose next tick is in 49 minutes, with past ticks.
func scheduled(name, state string, last ...client.PastTick) client.Schedule {
	s := client.Schedule{
		Name: name, State: state,
		Description: "At 08:00 on Monday to Friday, Europe/Berlin", Last: last,
	}
	if state == "active" {
		s.Next = []client.Tick{{At: noon.Add(49 * time.Minute)}}
	}
	return s
}

func ran(state client.State) client.PastTick { return client.PastTick{Outcome: "run", JobState: state} }

func TestShowLead_SaysWhatIsGoingOn(t *testing.T) {
	const runs = "Runs at 08:00 on Monday to Friday, Europe/Berlin; the next tick is in 49m; "
	paused := scheduled("a", "paused")
	paused.PausedAt, paused.PausedBy, paused.PauseNote = noon.Add(-2*time.Hour), "schedule:a",
		"the last 3 jobs died (pause_after_dead)"
	for _, c := range []struct {
		s    client.Schedule
		want lead
	}{
		{scheduled("a", "active"), lead{"", runs + "no tick has passed yet."}},
		{scheduled("a", "active", ran("dead"), ran("delivered")), lead{"ok", runs + "the last one was delivered."}},
		{scheduled("a", "active", ran("dead")), lead{"bad", runs + "the job of the last one is dead."}},
		{scheduled("a", "active", ran("ready")), lead{"", runs + "the job of the last one is ready."}},
		{scheduled("a", "active", ran("")), lead{"", runs + "the last one ran."}},
		{scheduled("a", "active", client.PastTick{Outcome: "missed"}), lead{"warn", runs +
			"the last one was missed: it was too late."}},
		{scheduled("a", "active", client.PastTick{Outcome: "failed", Reason: "the topic is gone."}), lead{"bad", runs +
			"the last one failed: the topic is gone."}},
		{scheduled("a", "ended", ran("delivered")), lead{"", "No tick is left; the last one was delivered."}},
		{paused, lead{"warn", "Paused by itself 2h ago: the last 3 jobs died (pause_after_dead). Resumed, it runs at " +
			"08:00 on Monday to Friday, Europe/Berlin."}},
		{client.Schedule{State: "unreadable"}, lead{"bad", "What is stored of this schedule is not readable, so no " +
			"tick runs: edit and save it, or delete it."}},
	} {
		require.Equal(t, c.want, showLead(&c.s, noon))
	}
}

func TestListLead_SaysWhatIsGoingOn(t *testing.T) {
	late := scheduled("later", "active")
	late.Next[0].At = noon.Add(time.Hour)
	for _, c := range []struct {
		all  []client.Schedule
		want lead
	}{
		{nil, lead{"", "There are no schedules: none registers jobs at times of its own."}},
		{[]client.Schedule{late, scheduled("reconcile", "active"), late}, lead{"", "3 schedules; the next tick is " +
			"reconcile in 49m."}},
		{[]client.Schedule{late, scheduled("a", "active", client.PastTick{Outcome: "missed"})}, lead{
			"bad", "2 schedules; the last tick of a was missed; the next tick is a in 49m.",
		}},
		{[]client.Schedule{scheduled("a", "active", client.PastTick{Outcome: "failed", Reason: "no topic."})}, lead{
			"bad", "1 schedule; the last tick of a failed: no topic; the next tick is a in 49m.",
		}},
		{[]client.Schedule{late, scheduled("a", "unreadable"), scheduled("b", "ended"), scheduled("c", "ended")}, lead{
			"bad", "1 of 4 schedules runs; a is not readable, and must be put again; b and c have ended; the next " +
				"tick is later in 1h.",
		}},
		{[]client.Schedule{
			scheduled("a", "active", client.PastTick{Outcome: "failed", Reason: "no topic."}),
			scheduled("b", "active", client.PastTick{Outcome: "missed"}), scheduled("c", "active", ran("dead")),
			scheduled("d", "active", client.PastTick{Outcome: "failed"}), scheduled("e", "active", ran("dead")),
			scheduled("f", "active", client.PastTick{Outcome: "failed"}),
			scheduled("g", "active", client.PastTick{Outcome: "failed"}),
			scheduled("h", "active", ran("delivered")), scheduled("i", "active", client.PastTick{Outcome: "missed"}),
		}, lead{
			"bad", "9 schedules; the last ticks of a, d and 2 more failed; the last ticks of b and i were missed; " +
				"the jobs of the last ticks of c and e are dead; the next tick is a in 49m.",
		}},
		{[]client.Schedule{scheduled("a", "active", ran("dead"))}, lead{"bad", "1 schedule; the job of the last tick " +
			"of a is dead; the next tick is a in 49m."}},
		{[]client.Schedule{scheduled("a", "paused"), scheduled("b", "paused")}, lead{"warn", "None of 2 schedules " +
			"runs; a and b are paused."}},
	} {
		require.Equal(t, c.want, listLead(c.all, false, noon))
	}
}
