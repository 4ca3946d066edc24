package scheduleform

import "github.com/ringback/ringback/console/web"

// The names of the fields, which are those of the API with a dot for each level. Those of the job begin with JobPrefix.
const (
	Cron           = "cron"
	Timezone       = "timezone"
	Every          = "every"
	Offset         = "offset"
	StartsAt       = "starts_at"
	EndsAt         = "ends_at"
	Jitter         = "jitter"
	MaxRuns        = "max_runs"
	Overlap        = "overlap"
	CatchUpRuns    = "catch_up.runs"
	CatchUpWindow  = "catch_up.window"
	PauseAfterDead = "pause_after_dead"
	Note           = "note"
	Paused         = "paused"
)

// JobPrefix begins the names of the fields of the job.
const JobPrefix = "job."

// TimingNames are the names of the fields that decide about the times of ticks, which can be previewed. RuleNames are
// the other ones that are not of the job. Names are both.
var (
	TimingNames = []string{Cron, Timezone, Every, Offset, StartsAt, EndsAt}
	RuleNames   = []string{Jitter, MaxRuns, Overlap, CatchUpRuns, CatchUpWindow, PauseAfterDead, Note, Paused}
	Names       = append(append([]string{}, TimingNames...), RuleNames...)
)

// TimezoneList is the id of the list of time zones that the field Timezone suggests.
const TimezoneList = "timezones"

// Timezones are time zones that the form suggests; others can be written.
var Timezones = []string{
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

// described are the labels and hints of the fields.
var described = map[string]web.Field{
	Cron: {
		Label: "Cron", Placeholder: "0 8 * * MON-FRI",
		Hint: "Minute, hour, day of the month, month and weekday, or a macro such as @daily.",
	},
	Timezone: {
		Label: "Time zone of cron", Placeholder: "Europe/Berlin", List: TimezoneList,
		Hint: "An IANA name. Empty: UTC.",
	},
	Every: {
		Label: "Or every", Placeholder: "15m",
		Hint: "An interval from 1s to 366d, in whole seconds, instead of cron.",
	},
	Offset: {
		Label: "Offset of the interval", Placeholder: "2m",
		Hint: "Ticks are the multiples of the interval since 1970 in UTC, plus this.",
	},
	StartsAt: {
		Label: "No ticks before", Placeholder: "2026-11-24 14:30",
		Hint: "A time in UTC, or one with its zone. Empty: no bound.",
	},
	EndsAt: {
		Label: "No ticks after", Placeholder: "2027-01-01 00:00",
		Hint: "A time in UTC, or one with its zone. Empty: no bound.",
	},
	Jitter: {Label: "Jitter", Placeholder: "1m", Hint: "Delays all jobs of the schedule by the same part of it, so " +
		"that many schedules do not run at once. At most 24h."},
	MaxRuns: {Label: "Ends after so many ticks that ran", Hint: "Empty: it does not end."},
	Overlap: {Label: "While the job of the tick before is unfinished", Kind: "select", Options: []web.Link{
		{To: "allow", Text: "run beside it"},
		{To: "skip", Text: "skip the tick"},
		{To: "cancel", Text: "cancel that job and run"},
	}},
	CatchUpRuns: {Label: "Of ticks that are late", Kind: "select", Options: []web.Link{
		{To: "last", Text: "run the newest one, unless a later tick runs"},
		{To: "all", Text: "run all, up to the newest 1,000"},
		{To: "none", Text: "run none"},
	}, Hint: "Late by more than a minute, because nothing ran or a quota was used up."},
	CatchUpWindow:  {Label: "If they are late by at most", Placeholder: "1h", Hint: "At most 366d. Empty: 1h."},
	PauseAfterDead: {Label: "Pauses itself after so many dead jobs in a row", Hint: "1 to 20. Empty: never."},
	Note:           {Label: "Note", Kind: "textarea", Rows: 2, Hint: "For people."},
	Paused:         {Label: "Begin paused", Kind: "checkbox", Value: "true"},
}

// Fields returns fields of the schedule for the template "field", in the order of names, with what is wrong with them.
func (f Form) Fields(errs web.FormErrors, names ...string) []web.Field {
	fields := make([]web.Field, len(names))
	for i, name := range names {
		field := described[name]
		field.Name, field.Error = name, errs.Of(name)
		if field.Kind == "checkbox" {
			field.Checked = f.Texts[name] == field.Value
		} else {
			field.Value = f.Texts[name]
		}
		fields[i] = field
	}
	return fields
}

// JobFields returns fields of the job, as Fields does. Their names are those of package jobform.
func (f Form) JobFields(errs web.FormErrors, names ...string) []web.Field {
	return f.Job.Fields(JobPrefix, errs, names...)
}
