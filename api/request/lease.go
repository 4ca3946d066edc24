package request

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// maxLeaseBytes bounds a request for leases, and one that settles some, in bytes: store.MaxBatch leases with a result
// fit.
const maxLeaseBytes = 4 << 20

// ReadLease reads a request for jobs of the topic in the path. The body is optional.
func ReadLease(w http.ResponseWriter, r *http.Request) (store.LeaseRequest, error) {
	topic, err := PathTopic(r)
	if err != nil {
		return store.LeaseRequest{}, err
	}
	text, err := ReadOptionalJSON(w, r, maxLeaseBytes)
	if err != nil {
		return store.LeaseRequest{}, err
	}
	l := newLeaseRequest(namespaceOf(r), topic)
	var d decoder
	if text != nil {
		d.read("", text, "a request for leases", d.leaseFields(&l))
	}
	d.checkLease("", &l)
	if p := d.problem(nil); p != nil {
		return l, p
	}
	return l, nil
}

// newLeaseRequest returns a request with the default of Max.
func newLeaseRequest(namespace, topic string) store.LeaseRequest {
	return store.LeaseRequest{Namespace: namespace, Topic: topic, Max: 1}
}

// leaseFields returns the readers of the fields of a request for leases.
func (d *decoder) leaseFields(l *store.LeaseRequest) fields {
	return fields{
		"max": func(at string, raw []byte) {
			if !isNull(raw) {
				l.Max = d.count(at, raw)
			}
		},
		"wait":  set(&l.Wait, d.duration),
		"lease": set(&l.Lease, d.positiveDuration),
		"lanes": set(&l.Lanes, d.lanePatterns),

		"request": set(&l.Request, d.boolean),
	}
}

// lanePatterns reads names of lanes, or prefixes with * at the end.
func (d *decoder) lanePatterns(at string, raw []byte) []string {
	all := d.texts(at, raw)
	switch n := len(all); {
	case raw[0] != '[':
	case n == 0:
		d.AddError(at, "must name a lane: leave it out for all lanes")
	case n > store.MaxLeaseLanes:
		d.AddError(at, fmt.Sprintf("must be at most %d", store.MaxLeaseLanes))
		return nil
	}
	for i, pattern := range all {
		prefix, ok := strings.CutSuffix(pattern, "*")
		if !job.IsLane(prefix) && !(ok && prefix == "") {
			d.AddError(at+"/"+strconv.Itoa(i), "must be the name of a lane, or the beginning of one and a *")
		}
	}
	return all
}

// checkLease checks the ranges of a request for leases. mark is the prefix of its fields.
func (d *decoder) checkLease(mark string, l *store.LeaseRequest) {
	if l.Max < 1 || l.Max > store.MaxLeased {
		d.addErrorOnce(mark+"/max", fmt.Sprintf("must be 1 to %d", store.MaxLeased))
	}
	if l.Wait < 0 || l.Wait > store.MaxLeaseWait {
		d.addErrorOnce(mark+"/wait", "must be 0s to 60s")
	}
	if l.Lease != 0 && (l.Lease < store.MinLease || l.Lease > store.MaxLease) {
		d.addErrorOnce(mark+"/lease", "must be 1s to 12h")
	}
}

// A LeasesRequest ends and extends leases, and asks for the next jobs.
type LeasesRequest struct {
	decoder
	Reports []store.LeaseReport
	Next    *store.LeaseRequest // nil: none are asked for

	namespace string
}

// LeaseLists are the names of the lists of a LeasesRequest, in the order in which they are settled.
var LeaseLists = [...]struct {
	Name   string
	Result store.LeaseResult
}{
	{"done", store.LeaseDone},
	{"answered", store.LeaseAnswered},
	{"retry", store.LeaseRetry},
	{"dead", store.LeaseDead},
	{"release", store.LeaseRelease},
	{"extend", store.LeaseExtend},
}

// ReadLeases reads a request that settles leases.
func ReadLeases(w http.ResponseWriter, r *http.Request) (LeasesRequest, error) {
	text, err := ReadJSON(w, r, maxLeaseBytes)
	if err != nil {
		return LeasesRequest{}, err
	}
	f, p := DecodeLeases(namespaceOf(r), text)
	if p != nil {
		return f, p
	}
	return f, nil
}

// DecodeLeases reads a request that settles leases of a namespace's clients.
func DecodeLeases(namespace string, text []byte) (LeasesRequest, *response.Problem) {
	f := LeasesRequest{namespace: namespace}
	lists := make(map[string][]byte)
	table := fields{"next": func(at string, raw []byte) {
		if !isNull(raw) {
			f.readNext(at, raw)
		}
	}}
	for _, list := range LeaseLists {
		table[list.Name] = func(_ string, raw []byte) {
			if !isNull(raw) {
				lists[list.Name] = raw
			}
		}
	}
	f.read("", text, "a settlement of leases", table)
	for _, list := range LeaseLists {
		if raw := lists[list.Name]; raw != nil {
			f.readReports("/"+list.Name, raw, list.Result)
		}
	}
	switch {
	case len(f.errors) > 0 || f.duplicateKey != "":
	case len(f.Reports) == 0 && f.Next == nil:
		f.AddError("", "must have done, answered, retry, dead, release, extend or next")
	case f.Next != nil:
		f.checkNext()
	}
	return f, f.problem(nil)
}

// readNext reads the request for the next jobs.
func (f *LeasesRequest) readNext(at string, raw []byte) {
	l := newLeaseRequest(f.namespace, "")
	table := f.leaseFields(&l)
	table["topic"] = set(&l.Topic, f.name)
	f.read(at, raw, "next", table)
	f.checkLease(at, &l)
	if l.Topic != "" && !job.IsTopic(l.Topic) {
		f.AddError(at+"/topic", "must name a topic")
	}
	f.Next = &l
}

// checkNext sets the topic of the next jobs to that of the leases, unless the request names one. If it cannot be read
// in any of them, no jobs are leased.
func (f *LeasesRequest) checkNext() {
	if f.Next.Topic != "" {
		return
	}
	for i := range f.Reports {
		switch topic := f.Reports[i].Lease.Queue.Topic; {
		case topic == "":
		case f.Next.Topic != "" && topic != f.Next.Topic:
			f.AddError("/next/topic", "is required, because the leases are of several topics")
			return
		default:
			f.Next.Topic = topic
		}
	}
	switch {
	case len(f.Reports) == 0:
		f.AddError("/next/topic", "is required, because there are no leases")
	case f.Next.Topic == "":
		f.Next = nil
	}
}

// readReports reads a list of leases.
func (f *LeasesRequest) readReports(at string, raw []byte, result store.LeaseResult) {
	if raw[0] != '[' {
		f.wrongType(at, raw, "an array of objects")
		return
	}
	for i, value := range Elements(raw) {
		if len(f.Reports) == store.MaxBatch {
			f.AddError(at, fmt.Sprintf("must be at most %d leases in all lists together", store.MaxBatch))
			return
		}
		f.Reports = append(f.Reports, f.report(at+"/"+strconv.Itoa(i), value, result))
	}
}

// report reads what a client reports about a lease. A text that is not a lease of this version is the zero lease, which
// is lost.
func (f *LeasesRequest) report(at string, raw []byte, result store.LeaseResult) store.LeaseReport {
	r := store.LeaseReport{Result: result}
	leased := false
	table := fields{"lease": func(at string, raw []byte) {
		leased = string(raw) != `""`
		r.Lease, _ = store.ParseClientLease(f.namespace, f.text(at, raw))
	}}
	required := ""
	switch result {
	case store.LeaseDone:
		table["response"] = set(&r.Response, f.responseText)
	case store.LeaseAnswered:
		table["status"] = set(&r.Status, f.responseStatus)
		table["response"] = set(&r.Response, f.responseText)
		table["after"] = setPointer(&r.After, f.retryAfter)
		table["nonretryable"] = set(&r.NonRetryable, f.boolean)
		required = "status"
	case store.LeaseRetry:
		table["after"] = setPointer(&r.After, f.retryAfter)
		table["error"] = set(&r.Error, f.text)
	case store.LeaseDead:
		table["reason"] = set(&r.Error, f.text)
		required = "reason"
	case store.LeaseExtend:
		table["for"] = set(&r.For, f.leaseLength)
		required = "for"
	}
	known := len(f.errors)
	f.read(at, raw, "an item", table)
	if !leased && raw[0] == '{' {
		f.AddError(at+"/lease", "is required")
	}
	if missing := r.Error == "" && r.For == 0 && r.Status == 0; required != "" && missing && len(f.errors) == known {
		f.AddError(at+"/"+required, "is required")
	}
	return r
}

// responseStatus reads the status of a receiver's response.
func (d *decoder) responseStatus(at string, raw []byte) int {
	before := len(d.errors)
	status := d.count(at, raw)
	if len(d.errors) == before && (status < 100 || status > 999) {
		d.AddError(at, "must be 100 to 999")
	}
	return status
}

// responseText reads what a client answers for a job: a string, or other JSON as it was sent.
func (d *decoder) responseText(at string, raw []byte) []byte {
	if raw[0] == '"' {
		return []byte(d.text(at, raw))
	}
	return slices.Clone(raw)
}

// retryAfter reads a wait that replaces that of the ladder.
func (d *decoder) retryAfter(at string, raw []byte) time.Duration {
	before := len(d.errors)
	wait := d.duration(at, raw)
	if len(d.errors) == before && (wait < 0 || wait > policy.MaxRung) {
		d.AddError(at, "must be 0s to 30d")
	}
	return wait
}

// leaseLength reads how much longer a lease lasts.
func (d *decoder) leaseLength(at string, raw []byte) time.Duration {
	before := len(d.errors)
	length := d.duration(at, raw)
	if len(d.errors) == before && (length < store.MinLease || length > store.MaxLease) {
		d.AddError(at, "must be 1s to 12h")
	}
	return length
}
