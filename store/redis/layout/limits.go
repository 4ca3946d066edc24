package layout

import (
	"strconv"
	"strings"

	"github.com/ringback/ringback/policy"
)

// FormatLimits formats a topic's limits as scripts read them (limits.lua): revision, flags, concurrency, retention,
// rate and deliver.
func FormatLimits(revision int64, p policy.Limits) string {
	fields := []string{strconv.FormatInt(revision, 10), formatFlags(p), strconv.Itoa(p.Concurrency)}
	for _, n := range []int64{
		Millis(*p.KeepDelivered.For), *p.KeepDelivered.Max, *p.KeepDelivered.MaxBytes,
		Millis(*p.KeepDead.For), *p.KeepDead.Max, *p.KeepDead.MaxBytes,
		Millis(*p.IDWindow),
	} {
		fields = append(fields, strconv.FormatInt(max(0, n), 10))
	}
	fields = append(fields, formatRate(p.Rate), strconv.Itoa(FormatDeliver(p.Deliver)))
	return strings.Join(fields, " ")
}

// FormatDeliver returns the number of a way of delivery in scripts.
func FormatDeliver(d policy.Deliver) int {
	switch d {
	case policy.DeliverPull:
		return 1
	case policy.DeliverHandler:
		return 2
	default:
		return 0
	}
}

// formatRate formats a rate: starts and ms.
func formatRate(r policy.Rate) string {
	if !r.Limited() {
		return "0 0"
	}
	return strconv.Itoa(r.Starts) + " " + strconv.FormatInt(Millis(r.Per), 10)
}

// FormatLaneLimits formats a lane's limits, without their revision (limits.lua).
func FormatLaneLimits(l policy.Limits) string {
	return formatFlags(l) + " " + strconv.Itoa(max(0, l.Concurrency)) + " " + formatRate(l.Rate)
}

// formatFlags formats the pause and the order of limits as one digit.
func formatFlags(l policy.Limits) string {
	flags := 0
	if l.Paused {
		flags++
	}
	if l.Ordered {
		flags += 2
	}
	return strconv.Itoa(flags)
}

// IsPaused reports whether the limits of a topic or a lane, with their revision, are a pause.
func IsPaused(limits string) bool {
	_, flags, _ := strings.Cut(limits, " ")
	return strings.HasPrefix(flags, "1 ") || strings.HasPrefix(flags, "3 ")
}
