package request

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ringback/ringback/api/jsonscan"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// MaxSelectedIDs bounds the ids of a selection.
	MaxSelectedIDs = 10_000
	// maxSelection bounds the request, in bytes. MaxSelectedIDs ids fit.
	maxSelection = 2 << 20
)

// A DeadLetterRequest selects dead letters, and for a revival how they are sent again.
type DeadLetterRequest struct {
	decoder
	store.Selection
	store.RevivePlan
	All bool
}

// DecodeDeadLetters reads a selection; with revival also how the jobs are sent again.
func DecodeDeadLetters(text []byte, revival bool) (DeadLetterRequest, *response.Problem) {
	var f DeadLetterRequest
	var filtered, named, delayed bool // whether a filter, ids, a delay are given
	note := func(given *bool, read fieldReader) fieldReader {
		return func(at string, raw []byte) {
			*given = *given || !isNull(raw)
			read(at, raw)
		}
	}
	table := f.filterFields(&f.Filter)
	for name, read := range table {
		table[name] = note(&filtered, read)
	}
	table["ids"] = note(&named, set(&f.IDs, f.ids))
	table["all"] = set(&f.All, f.boolean)
	table["dry_run"] = set(&f.DryRun, f.boolean)
	what := "a purge"
	if revival {
		what = "a revival"
		table["rate"] = set(&f.Rate, f.rate)
		table["lane_rate"] = set(&f.LaneRate, f.rate)
		table["delay"] = note(&delayed, set(&f.Delay, f.duration))
		table["expires_in"] = set(&f.ExpiresIn, f.positiveDuration)
		table["url"] = set(&f.URL, f.name)
	}
	f.read("", text, what, table)
	f.Filter.States = []job.State{job.Dead}
	f.CheckFilter("/", &f.Filter)
	switch {
	case named && filtered:
		f.errors = append(f.errors, job.MutuallyExclusive("/ids", "a filter"))
	case f.All && (named || filtered):
		f.errors = append(f.errors, job.MutuallyExclusive("/all", "ids or a filter"))
	case len(f.errors) == 0 && !f.All && !named && !filtered:
		f.AddError("", `must set ids, a filter such as topic, or "all": true for every dead letter`)
	}
	if f.LaneRate.Limited() && named {
		f.AddError("/lane_rate", "requires a filter, not ids")
	}
	if delayed && !f.Rate.Limited() && !f.LaneRate.Limited() {
		f.AddError("/delay", "requires rate or lane_rate")
	}
	return f, f.problem(job.Validate(job.New{Spec: job.Spec{URL: f.URL}, Delay: f.Delay, ExpiresIn: f.expiry()}, time.Time{}))
}

// expiry returns the new expiry counted from the registration, as job.Validate compares it with the delay.
func (f *DeadLetterRequest) expiry() time.Duration {
	if f.ExpiresIn <= 0 {
		return f.ExpiresIn
	}
	return f.ExpiresIn + max(f.Delay, 0)
}

// ids reads the ids of jobs.
func (d *decoder) ids(at string, raw []byte) []string {
	if raw[0] != '[' {
		d.wrongType(at, raw, "an array of strings")
		return nil
	}
	var all []string
	for i, value := range jsonscan.Elements(raw) {
		if i == MaxSelectedIDs {
			d.AddError(at, fmt.Sprintf("must be at most %d", MaxSelectedIDs))
			return nil
		}
		id := ""
		if value[0] == '"' {
			id = jsonscan.Unquote(value)
		}
		if !job.IsID(id) {
			d.AddError(at+"/"+strconv.Itoa(i), "must be the id of a job")
		}
		all = append(all, id)
	}
	if len(all) == 0 {
		d.AddError(at, "must name a job")
	}
	return all
}

// ReadDeadLetters reads a request to revive or purge dead letters.
func ReadDeadLetters(w http.ResponseWriter, r *http.Request, revival bool) (DeadLetterRequest, error) {
	text, err := ReadJSON(w, r, maxSelection)
	if err != nil {
		return DeadLetterRequest{}, err
	}
	f, p := DecodeDeadLetters(text, revival)
	f.Filter.Namespace = namespaceOf(r)
	if p != nil {
		return f, p
	}
	return f, nil
}
