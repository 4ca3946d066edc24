package request

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

const (
	// maxBackfillBytes bounds the request of a backfill, in bytes.
	maxBackfillBytes = 16 << 10
	// previewName is the path of another route, and so the name of no schedule.
	previewName = "preview"
	// defaultPreview and maxPreview are the default and the largest number of ticks in a preview.
	defaultPreview = 10
	maxPreview     = 100
	// maxBackfillRate is the largest rate of a backfill, in ticks per second.
	maxBackfillRate = 100
)

// defaultBackfillRate is the rate of a backfill without one.
var defaultBackfillRate = policy.Rate{Starts: 10, Per: time.Second}

// scheduleNameRule says which names schedules may have.
var scheduleNameRule = fmt.Sprintf("must be 1 to %d of A-Z a-z 0-9 _ : and -, and not %s",
	store.MaxScheduleName, previewName)

// PathSchedule returns the name of the schedule in the path. An invalid name is not found.
func PathSchedule(r *http.Request) (string, error) {
	name := r.PathValue("schedule")
	if !isScheduleName(name) {
		return "", response.NewProblem(response.NotFound, "no schedule has such a name: a name "+scheduleNameRule)
	}
	return name, nil
}

// PathNewSchedule returns the name of the schedule in the path, which need not exist.
func PathNewSchedule(r *http.Request) (string, error) {
	name := r.PathValue("schedule")
	if !isScheduleName(name) {
		return "", response.Invalid(job.FieldError{Field: "/name", Detail: scheduleNameRule})
	}
	return name, nil
}

func isScheduleName(name string) bool {
	return len(name) <= store.MaxScheduleName && job.IsID(name) && name != previewName
}

// A scheduleForm reads a schedule.
type scheduleForm struct {
	decoder
	store.ScheduleSettings
	paused *bool

	job     jobForm
	headers headerForm
	named   bool // the job
}

// DecodeSchedule reads a whole schedule into the stored one. Secret headers of the job are kept unless they are named,
// and so are the mark of files and the state paused. Members that only answers have are ignored.
func DecodeSchedule(text []byte, stored *store.Schedule, maxBody int64, actor string) *response.Problem {
	f := scheduleForm{ScheduleSettings: store.ScheduleSettings{
		Overlap: store.OverlapAllow, CatchUp: store.CatchUp{
			Window: store.DefaultCatchUpWindow,
			Runs:   store.CatchUpLast,
		}, ManagedBy: stored.ManagedBy,
	}}
	special := fields{
		"paused": setPointer(&f.paused, f.boolean),
		"job":    f.ifSet(func(at string, raw []byte) { f.readJob(at, raw, &stored.Job) }),
	}
	for _, name := range []string{
		"name", "state", "revision", "created_at", "created_by", "updated_at", "updated_by", "paused_at", "paused_by",
		"pause_note", "description", "jitter_delay", "next", "last", "counts", "backfill", "durability",
	} {
		special[name] = func(string, []byte) {}
	}
	from := source{stored: reflect.ValueOf(&stored.ScheduleSettings).Elem()}
	f.readMembers("", text, "a schedule", reflect.ValueOf(&f.ScheduleSettings).Elem(), from, special)
	f.checkJob(min(maxBody, store.MaxScheduleBody), stored)
	if p := f.check(); p != nil {
		return p
	}
	stored.ScheduleSettings = f.ScheduleSettings
	if f.paused != nil && *f.paused != stored.Paused {
		stored.Paused, stored.Pause = *f.paused, policy.Pause{}
		if stored.Paused {
			stored.Pause = policy.Pause{At: job.Millis(time.Now()), By: actor}
		}
	}
	return nil
}

// ifSet returns a reader that leaves the default for null.
func (d *decoder) ifSet(read fieldReader) fieldReader {
	return func(at string, raw []byte) {
		if !isNull(raw) {
			read(at, raw)
		}
	}
}

// ofTick are the fields of a job that its tick decides.
var ofTick = map[string]string{
	"id":         "cannot be set: the job of a tick has the id rb:s:NAME:UNIX",
	"delay":      "cannot be set: the job is due at its tick; see jitter",
	"run_at":     "cannot be set: the job is due at its tick",
	"expires_at": "cannot be set: use expires_in",
}

// readJob reads what each tick registers.
func (f *scheduleForm) readJob(at string, raw []byte, stored *job.Spec) {
	j := &f.job
	f.named = true
	for name, value := range j.object("", raw) {
		field, known := JobFields[string(name)]
		switch {
		case !known:
			j.unknownField("", name, "a job", maps.Keys(JobFields))
		case ofTick[string(name)] != "":
			j.AddError(field.pointer, ofTick[string(name)])
		case string(name) == "headers":
			f.headers.reader(&j.decoder)(field.pointer, value)
		case string(name) == "on_delivered" && !isNull(value):
			j.OnDelivered = j.callback(field.pointer, value, source{stored: reflect.ValueOf(stored.OnDelivered)})
		case string(name) == "on_dead" && !isNull(value):
			j.OnDead = j.callback(field.pointer, value, source{stored: reflect.ValueOf(stored.OnDead)})
		case isNull(value) && !field.null: // as if left out
		default:
			field.read(j, field.pointer, value)
		}
	}
	if j.duplicateKey != "" && f.duplicateKey == "" {
		f.duplicateKey = at + j.duplicateKey
	}
}

// checkJob validates the job, and adds the stored secret headers that are kept.
func (f *scheduleForm) checkJob(maxBody int64, stored *store.Schedule) {
	j := &f.job
	if !f.named {
		f.addErrorOnce("/job", "is required: what each tick registers")
		return
	}
	f.headers.moved = job.ChangesOrigin(stored.Job.URL, j.URL)
	kept := make(map[string][]string)
	j.Header = f.headers.mergeInto(&j.decoder, "/headers", stored.Job.Header, false)
	for name, values := range j.Header {
		if _, sealed := job.Sealed(values); sealed { // in its stored form, which is not valid in a registration
			kept[textproto.CanonicalMIMEHeaderKey(name)] = values
			delete(j.Header, name)
		} else if isPlaceholder(name, values) { // refused already
			delete(j.Header, name)
		}
	}
	if p := j.check(time.Time{}, maxBody); p != nil {
		for _, err := range p.Fields {
			f.AddError("/job"+err.Field, err.Detail)
		}
	}
	j.Header = job.CanonicalHeader(j.Header)
	for name, values := range kept {
		if j.Header == nil {
			j.Header = make(map[string][]string)
		}
		j.Header[name] = values
	}
	canonicalHeaders(j.OnDelivered, j.OnDead)
	f.Job, f.ExpiresIn = j.Spec, j.ExpiresIn
}

// check validates the schedule.
func (f *scheduleForm) check() *response.Problem {
	return f.problem(append(checkSpec(f.Spec), job.Check(f.ScheduleSettings)...))
}

// checkSpec returns the invalid fields of the ticks.
func checkSpec(spec schedule.Spec) []job.FieldError {
	_, err := schedule.Parse(spec)
	if invalid, ok := errors.AsType[*job.InvalidError](err); ok {
		return invalid.Errors
	}
	return nil
}

// Preview reads the ticks to preview, the time after which they come, and how many.
func (q *Query) Preview(now time.Time) (ticks *schedule.Schedule, after time.Time, n int, err error) {
	spec := schedule.Spec{
		Cron: q.Get("cron"), Timezone: q.Get("timezone"), Every: q.duration("every"), Offset: q.duration("offset"),
		StartsAt: q.time("starts_at"), EndsAt: q.time("ends_at"),
	}
	if after = q.time("from"); after.IsZero() {
		after = now
	}
	n = defaultPreview
	if text := q.Get("limit"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maxPreview {
			q.AddError("?limit", fmt.Sprintf("must be 1 to %d", maxPreview))
		}
	}
	invalid := checkSpec(spec)
	for i := range invalid {
		invalid[i].Field = QueryField(strings.TrimPrefix(invalid[i].Field, "/"))
	}
	if p := q.problem(invalid); p != nil {
		return nil, after, n, p
	}
	ticks, err = schedule.Parse(spec)
	return ticks, after, n, err
}

// duration returns a duration; zero when there is none.
func (q *Query) duration(name string) time.Duration {
	text := q.Get(name)
	if text == "" {
		return 0
	}
	span, err := units.ParseDuration(text)
	if err != nil {
		q.AddError(QueryField(name), err.Error())
	}
	return outOfRangeIfZero(span)
}

// ReadBackfill reads the order of a backfill, whose time must have passed at now.
func ReadBackfill(
	w http.ResponseWriter, r *http.Request, now time.Time,
) (order store.Backfill, dryRun bool, err error) {
	text, err := ReadJSON(w, r, maxBackfillBytes)
	if err != nil {
		return order, false, err
	}
	var d decoder
	d.read("", text, "a backfill", fields{
		"after":   set(&order.After, d.time),
		"before":  set(&order.Before, d.time),
		"rate":    set(&order.Rate, d.rate),
		"dry_run": set(&dryRun, d.boolean),
	})
	if !order.Rate.Limited() {
		order.Rate = defaultBackfillRate
	}
	for field, at := range map[string]time.Time{"/after": order.After, "/before": order.Before} {
		if at.IsZero() {
			d.addErrorOnce(field, "is required: the ticks from after on, and before before, are run")
		}
	}
	switch {
	case len(d.errors) > 0:
	case !order.After.Before(order.Before):
		d.AddError("/before", "must be later than after")
	case order.Before.After(now):
		d.AddError("/before", "must not be in the future: later ticks run by themselves")
	case time.Duration(order.Rate.Starts) > maxBackfillRate*order.Rate.Per/time.Second:
		d.AddError("/rate", fmt.Sprintf(`must be at most "%d/s"`, maxBackfillRate))
	}
	if p := d.problem(nil); p != nil {
		return order, false, p
	}
	return order, dryRun, nil
}
