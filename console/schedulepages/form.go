package schedulepages

import (
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
)

// scheduleForm is the form of a schedule. Its groups are when it runs, the job, more of the job, and rules.
var scheduleForm = form.Of[client.ScheduleRequest](
	form.Group{Title: "When", Fields: fieldsOf(
		web.Field{
			Name: "cron", Label: "Cron", Placeholder: "0 8 * * MON-FRI",
			Hint: "Minute, hour, day of the month, month and weekday, or a macro such as @daily.",
		},
		web.Field{
			Name: "timezone", Label: "Time zone of cron", Placeholder: "Europe/Berlin", List: "timezones",
			Hint: "An IANA name. Empty: UTC.",
		},
		web.Field{
			Name: "every", Label: "Or every", Placeholder: "15m",
			Hint: "An interval from 1s to 366d, in whole seconds, instead of cron.",
		},
		web.Field{
			Name: "offset", Label: "Offset of the interval", Placeholder: "2m",
			Hint: "Ticks are the multiples of the interval since 1970 in UTC, plus this.",
		},
		web.Field{
			Name: "starts_at", Label: "No ticks before", Placeholder: "2026-11-24 14:30",
			Hint: "A time in UTC, or one with its zone. Empty: no bound.",
		},
		web.Field{
			Name: "ends_at", Label: "No ticks after", Placeholder: "2027-01-01 00:00",
			Hint: "A time in UTC, or one with its zone. Empty: no bound.",
		},
	)},
	form.Group{Title: jobTitle, Fields: form.JobFields("job.", "url", "topic", "body", "body_as")},
	form.Group{Title: jobTitle, Fields: form.JobFields("job.", "method", "headers", "content_type", "lane", "retries",
		"ladder", "timeout", "expires_in", "labels", "on_delivered", "on_dead")},
	form.Group{Title: "Rules", Fields: fieldsOf(
		web.Field{
			Name: "jitter", Label: "Jitter", Placeholder: "1m",
			Hint: "Delays all jobs of the schedule by the same part of it, so that many schedules do not run at " +
				"once. At most 24h.",
		},
		web.Field{
			Name: "overlap", Label: "While the job of the tick before is unfinished", Kind: "select",
			Options: []web.Link{
				{To: "allow", Text: "run beside it"},
				{To: "skip", Text: "skip the tick"},
				{To: "cancel", Text: "cancel that job and run"},
			},
		},
		web.Field{
			Name: "catch_up.runs", Label: "Of ticks that are late", Kind: "select", Options: []web.Link{
				{To: "last", Text: "run the newest one, unless a later tick runs"},
				{To: "all", Text: "run all, up to the newest 1,000"},
				{To: "none", Text: "run none"},
			}, Hint: "Late by more than a minute, because nothing ran or a quota was used up.",
		},
		web.Field{
			Name: "catch_up.window", Label: "If they are late by at most", Placeholder: "1h",
			Hint: "At most 366d. Empty: 1h.",
		},
		web.Field{Name: "max_runs", Label: "Ends after so many ticks that ran", Hint: "Empty: it does not end."},
		web.Field{
			Name: "pause_after_dead", Label: "Pauses itself after so many dead jobs in a row",
			Hint: "1 to 20. Empty: never.",
		},
		web.Field{Name: "note", Label: "Note", Kind: "textarea", Rows: 2, Hint: "For people."},
		web.Field{
			Name: "managed_by", Label: "Managed by",
			Hint: "The files that set the schedule: ringback apply writes it. Empty: none.",
		},
		web.Field{Name: "paused", Label: "Begins", Kind: "select", Options: []web.Link{
			{To: "", Text: "at once"}, {To: "true", Text: "paused"},
		}},
	)},
)

const jobTitle = "The job of each tick"

// The groups of the form.
const (
	timingGroup = iota
	jobGroup
	moreGroup
	ruleGroup
)

func fieldsOf(all ...web.Field) []form.Field {
	fields := make([]form.Field, len(all))
	for i, f := range all {
		fields[i].Field = f
	}
	return fields
}

// valuesOf returns what is stored of a schedule. Whether it is paused is not of its form, but of its page.
func valuesOf(s *client.Schedule) form.Values {
	values := scheduleForm.Values(s.Raw)
	delete(values, "paused")
	return values
}

// timezones are time zones that the form suggests; others can be written.
var timezones = []string{
	"UTC", "Africa/Cairo", "Africa/Johannesburg", "Africa/Lagos", "Africa/Nairobi", "America/Anchorage",
	"America/Argentina/Buenos_Aires", "America/Bogota", "America/Chicago", "America/Denver", "America/Halifax",
	"America/Lima", "America/Los_Angeles", "America/Mexico_City", "America/New_York", "America/Phoenix",
	"America/Santiago", "America/Sao_Paulo", "America/St_Johns", "America/Toronto", "America/Vancouver", "Asia/Bangkok",
	"Asia/Dhaka", "Asia/Dubai", "Asia/Ho_Chi_Minh", "Asia/Hong_Kong", "Asia/Jakarta", "Asia/Jerusalem", "Asia/Karachi",
	"Asia/Kathmandu", "Asia/Kolkata", "Asia/Kuala_Lumpur", "Asia/Manila", "Asia/Riyadh", "Asia/Seoul", "Asia/Shanghai",
	"Asia/Singapore", "Asia/Taipei", "Asia/Tehran", "Asia/Tokyo", "Atlantic/Reykjavik", "Australia/Adelaide",
	"Australia/Brisbane", "Australia/Melbourne", "Australia/Perth", "Australia/Sydney", "Europe/Amsterdam",
	"Europe/Athens", "Europe/Berlin", "Europe/Brussels", "Europe/Bucharest", "Europe/Budapest", "Europe/Copenhagen",
	"Europe/Dublin", "Europe/Helsinki", "Europe/Istanbul", "Europe/Kyiv", "Europe/Lisbon", "Europe/London",
	"Europe/Madrid", "Europe/Oslo", "Europe/Paris", "Europe/Prague", "Europe/Rome", "Europe/Sofia", "Europe/Stockholm",
	"Europe/Vienna", "Europe/Warsaw", "Europe/Zurich", "Pacific/Auckland", "Pacific/Honolulu",
}
