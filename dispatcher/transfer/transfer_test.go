package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/dispatcher/tenancy"
	"github.com/ringback/ringback/dispatcher/transfer"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/sqlite"
	"github.com/ringback/ringback/store/storetest"
)

// tester is a test, or one run of a property.
type tester interface {
	require.TestingT
	Helper()
}

func model(shards int) store.Store { return storetest.NewModel(storetest.ModelOptions{Shards: shards}) }

func openSQLite(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(),
		sqlite.Options{Path: filepath.Join(t.TempDir(), "ringback.db"), Limits: policy.Builtin().Limits()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// options returns options with stores: main, and maybe eu.
func options(stores ...store.Store) transfer.Options {
	var o transfer.Options
	for i, s := range stores {
		o.Stores = append(o.Stores, transfer.Store{Store: s, Name: []string{"main", "eu"}[i], URL: "test:"})
	}
	return o
}

func export(t tester, o transfer.Options) ([]byte, transfer.Ledger) {
	t.Helper()
	var file bytes.Buffer
	ledger, err := transfer.Export(context.Background(), &file, o)
	require.NoError(t, err)
	return file.Bytes(), ledger
}

func importFile(t tester, file []byte, o transfer.Options) transfer.Imported {
	t.Helper()
	checked, err := transfer.Check(context.Background(), bytes.NewReader(file), o)
	require.NoError(t, err)
	result, err := transfer.Import(context.Background(), bytes.NewReader(file), o)
	require.NoError(t, err)
	require.Equal(t, checked, result.File)
	return result
}

func put(t tester, s store.Settings, kind, namespace, name, value string) {
	t.Helper()
	key := store.DocumentKey{Kind: kind, Namespace: namespace, Name: name}
	_, err := s.PutDocument(context.Background(), store.NewToken(),
		store.Document{Key: key, Value: []byte(value)}, policy.Limits{})
	require.NoError(t, err)
}

func putTopic(t tester, s store.Store, namespace, name string, p policy.Topic) {
	t.Helper()
	_, err := store.PutTopic(context.Background(), s, store.Topic{Namespace: namespace, Name: name, Policy: p})
	require.NoError(t, err)
}

func putLane(t tester, s store.Store, q job.Queue, l policy.Lane) {
	t.Helper()
	_, err := store.PutLane(context.Background(), shardOf(s, q), store.NewToken(), store.Lane{Queue: q, Settings: l})
	require.NoError(t, err)
}

func shardOf(s store.Store, q job.Queue) store.Shard {
	return s.Shards()[store.ShardOf(len(s.Shards()), q)]
}

func newJob(id string, q job.Queue) store.NewJob {
	n := store.NewJob{New: job.New{Spec: job.Spec{
		ID: id, Queue: q, URL: "https://" + q.Lane + "/", Method: "POST", BodyKind: job.BodyText,
		Body: []byte("body of " + id), ContentType: "text/plain; charset=utf-8",
	}}}
	n.Fingerprint = codec.Fingerprint(&n.New)
	return n
}

func insert(t tester, s store.Store, jobs ...store.NewJob) {
	t.Helper()
	for _, result := range router.New(s).Insert(context.Background(), jobs) {
		require.NoError(t, result.Err)
		require.Equal(t, store.Created, result.Outcome)
	}
}

func claim(t tester, s store.Store, q job.Queue, most int) []store.ClaimedJob {
	t.Helper()
	result, err := shardOf(s, q).Claim(context.Background(), store.NewToken(), store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: q, Max: most, Timeout: time.Minute}}, Max: most,
		MaxBytes: 1 << 20, Margin: time.Second,
	})
	require.NoError(t, err)
	return result.Jobs
}

func settle(t tester, s store.Store, c store.ClaimedJob, v policy.Verdict, outbox ...store.NewJob) {
	t.Helper()
	class := policy.ClassNone
	if v.Kind == policy.Again {
		class = policy.ClassReset
	}
	errs, _, err := shardOf(s, c.Queue).Settle(context.Background(), store.NewToken(), []store.Settlement{{
		Ref: c.Ref(), Queue: c.Queue, Lease: c.Lease, Verdict: v, Outbox: outbox,
		Attempt: job.Attempt{
			N: c.Attempts + 1, Kind: job.KindAttempt, StartedAt: job.Millis(time.Now()), Status: 503,
			Verdict: v.Kind.String(), Reason: v.Reason, Error: "<busy>", ErrorClass: class,
		},
	}}, nil)
	require.NoError(t, err)
	require.NoError(t, errs[0])
}

// content is everything that an export moves.
type content struct {
	jobs      map[job.Ref]store.Record
	documents map[store.DocumentKey]string
}

// read reads the content of stores as it is behind an export.
func read(t tester, o transfer.Options, namespaces ...string) content {
	t.Helper()
	ctx, c := context.Background(), content{make(map[job.Ref]store.Record), make(map[store.DocumentKey]string)}
	for _, s := range o.Stores {
		for _, kind := range []string{
			tenancy.KindNamespace, tenancy.KindToken, tenancy.KindLastUses, store.KindTopic, store.KindSchedule,
		} {
			docs, _, err := s.ListDocuments(ctx, store.DocumentKey{Kind: kind}, 0)
			require.NoError(t, err)
			for _, doc := range docs {
				c.documents[doc.Key] = string(doc.Value)
			}
		}
		for _, shard := range s.Shards() {
			docs, _, err := shard.ScanLanes(ctx, "")
			require.NoError(t, err)
			for _, doc := range docs {
				c.documents[doc.Key] = string(doc.Value)
			}
			for _, namespace := range namespaces {
				f := store.Filter{Namespace: namespace, Limit: store.MaxListLimit}
				for more := true; more; {
					page, err := shard.List(ctx, f)
					require.NoError(t, err)
					var refs []job.Ref
					for _, j := range page.Jobs {
						refs = append(refs, j.Ref())
					}
					for len(refs) > 0 {
						records, err := shard.GetRecords(ctx, refs)
						require.NoError(t, err)
						for _, r := range records {
							c.jobs[r.Ref()] = normal(r)
						}
						refs = refs[len(records):]
					}
					f.After, more = page.Reached, page.More
				}
			}
		}
	}
	return c
}

// normal returns a record without what differs between engines, and as an export writes it.
func normal(r store.Record) store.Record {
	r.Number = 0
	if !r.State.Ended() {
		r.State = job.Scheduled
	}
	if len(r.History) == 0 {
		r.History = nil
	}
	if len(r.Events) == 0 {
		r.Events = nil
	}
	if len(r.Header) == 0 {
		r.Header = nil
	}
	if len(r.Body) == 0 {
		r.Body = nil
	}
	return r
}

var queues = []job.Queue{
	{Namespace: "default", Topic: "orders", Lane: "a.example:443"},
	{Namespace: "default", Topic: "orders", Lane: "b.example:443"},
	{Namespace: "default", Topic: "mails", Lane: "a.example:443"},
	{Namespace: "shop", Topic: "orders", Lane: "a.example:443"},
	{Namespace: "default", Topic: "_callbacks", Lane: "c.example:443"},
	{Namespace: "default", Topic: "_schedules", Lane: "daily"},
	{Namespace: "default", Topic: "ordered", Lane: "a.example:443"},
}

// fill fills stores at random: jobs in all states, settings of all kinds.
func fill(t *rapid.T, o transfer.Options) {
	ctx, main := context.Background(), o.Stores[0].Store
	shop := o.Stores[len(o.Stores)-1]
	put(t, main, tenancy.KindNamespace, "default", "shop",
		fmt.Sprintf(`{"store":%q,"quota":{"pending":100}}`, shop.Name))
	put(t, main, tenancy.KindToken, "default", "abcdefgh", `{"name":"api","role":"publish","namespace":"shop",`+
		`"bodies":false,"hash":"c2VjcmV0","created_at":"2026-01-01T00:00:00Z"}`)
	put(t, main, tenancy.KindLastUses, "default", "shop", `{"abcdefgh":1767225600}`)
	put(t, main, store.KindSchedule, "default", "daily:eu",
		`{"Cron":"0 8 * * *","JobID":"rb:schedule:daily:x","Since":7}`)
	putTopic(t, main, "default", "ordered", policy.Topic{Ordered: true})
	putTopic(t, main, "default", "orders",
		policy.Topic{Paused: rapid.Bool().Draw(t, "paused"), Secrets: []policy.Secret{{ID: "1", Value: "plain:top"}}})
	putLane(t, main, queues[1], policy.Lane{LaneConcurrency: 3, Ordered: rapid.Bool().Draw(t, "ordered lane")})
	putLane(t, main, job.Queue{Namespace: "default", Topic: "unused", Lane: "x"}, policy.Lane{Paused: true})
	storeOf := func(q job.Queue) store.Store {
		if q.Namespace == "shop" {
			return shop.Store
		}
		return main
	}
	for i := range rapid.IntRange(0, 30).Draw(t, "jobs") {
		q := rapid.SampledFrom(queues).Draw(t, "queue")
		s := storeOf(q)
		n := newJob(fmt.Sprintf("job-%d", i), q)
		n.Body = rapid.SampledFrom([][]byte{
			nil,
			{},
			[]byte(`{"a":"<ü>"}`),
			{0, 255},
			[]byte("\x01"),
			[]byte("line\nline"),
		}).Draw(t, "body")
		if n.Body == nil {
			n.BodyKind, n.ContentType = job.BodyNone, ""
		}
		n.Header = map[string][]string{"X-A": {"1", "2"}, "Authorization": job.SealedValues("plain:\nsecret")}
		n.Labels = map[string]string{"customer": "4 2"}
		n.Retries, n.Ladder = new(3), policy.Ladder{time.Second, time.Minute}
		n.OnDead = &policy.Callback{
			URL:     "https://o.example/",
			Headers: map[string][]string{"X-Token": job.SealedValues("plain:\nx")},
		}
		n.MaxAge = time.Duration(rapid.SampledFrom([]int{0, 100}).Draw(t, "max age")) * time.Hour
		if rapid.Bool().Draw(t, "generated") {
			n.Fingerprint = nil
		}
		if rapid.Bool().Draw(t, "later") {
			n.Delay, n.ExpiresIn = time.Hour, 2*time.Hour
		}
		insert(t, s, n)
		shard := shardOf(s, q)
		switch rapid.IntRange(0, 7).Draw(t, "then") {
		case 0:
			_, err := shard.Cancel(ctx, store.NewToken(), n.Ref(), store.Cancellation{Actor: "<me>"})
			require.NoError(t, err)
		case 1:
			_, err := storetest.Edit(ctx, shard, store.NewToken(), n.Ref(),
				func(s *job.Spec) { s.URL = "https://other.example/" })
			require.NoError(t, err)
		case 2:
			_, err := shard.Replace(ctx, store.NewToken(), n.Ref(),
				store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
			require.NoError(t, err)
		}
		for _, c := range claim(t, s, q, 2) {
			switch rapid.IntRange(0, 5).Draw(t, "verdict") {
			case 0:
				settle(t, s, c, policy.Verdict{Kind: policy.Delivered}, newJob("callback-"+
					c.ID, job.Queue{Namespace: q.Namespace, Topic: job.CallbackTopic, Lane: "c.example:443"}))
			case 1, 2:
				settle(t, s, c, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp})
				if rapid.Bool().Draw(t, "revive") {
					_, err := shard.Revive(ctx, store.NewToken(), []store.Revival{{Ref: c.Ref(), Delay: time.Minute}})
					require.NoError(t, err)
				}
			case 3:
				settle(t, s, c, policy.Verdict{Kind: policy.Again, Wait: time.Minute})
			case 4:
				settle(t, s, c, policy.Verdict{Kind: policy.Again})
			default: // it stays running
			}
		}
	}
}

// setRapid sets flags of rapid's, unless they are given.
var setRapid = sync.OnceFunc(func() {
	given := make(map[string]bool)
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "20", "rapid.nofailfile": "true"} {
		if !given[name] {
			if err := flag.Set(name, value); err != nil {
				panic(err)
			}
		}
	}
})

// random checks that what is in stores is in others behind an export and an import, and in a third behind another pair.
func random(t *testing.T, open func(shards int) store.Store) {
	setRapid()
	rapid.Check(t, func(t *rapid.T) {
		shards := rapid.SampledFrom([]int{1, 3, 16})
		from := options(model(shards.Draw(t, "from")), model(shards.Draw(t, "from eu")))
		if rapid.Bool().Draw(t, "one store") {
			from.Stores = from.Stores[:1]
		}
		fill(t, from)
		file, ledger := export(t, from)
		wanted := read(t, from, "default", "shop")

		to := options(open(shards.Draw(t, "to")), open(shards.Draw(t, "to eu")))
		imported := importFile(t, file, to)
		require.Equal(t, ledger, imported.File)
		require.Equal(t, ledger, imported.Stored)
		require.EqualValues(t, len(wanted.jobs), imported.Created)
		got := read(t, to, "default", "shop")
		require.Equal(t, wanted.documents, got.documents)
		require.Equal(t, wanted.jobs, got.jobs)
		again := importFile(t, file, to)
		require.Zero(t, again.Created)
		require.False(t, again.DoneAt.IsZero())

		second, ledgerAgain := export(t, to)
		require.Equal(t, ledger, ledgerAgain)
		back := options(model(shards.Draw(t, "back")), model(1))
		importFile(t, second, back)
		require.Equal(t, wanted, read(t, back, "default", "shop"))
		for _, s := range append(to.Stores, back.Stores...) {
			require.NoError(t, storetest.Check(context.Background(), s))
		}
	})
}

func TestTransfer_BetweenModels(t *testing.T) { random(t, model) }

// cut is a writer that fails behind some bytes.
type cut struct {
	bytes.Buffer

	room int
}

var errCut = errors.New("no space left")

func (c *cut) Write(p []byte) (int, error) {
	if c.Len()+len(p) > c.room {
		n, _ := c.Buffer.Write(p[:c.room-c.Len()])
		return n, errCut
	}
	return c.Buffer.Write(p)
}

// many returns a store with n jobs, some of them in an ordered queue. The lists of SQLite are faster than those of the
// model.
func many(t *testing.T, n int) store.Store {
	t.Helper()
	s := openSQLite(t)
	putTopic(t, s, "default", "ordered", policy.Topic{Ordered: true})
	var jobs []store.NewJob
	for i := range n {
		jobs = append(jobs, newJob(fmt.Sprintf("job-%05d", (i*7919)%n), queues[[]int{0, 2, 6}[i%3]]))
	}
	insert(t, s, jobs...)
	return s
}

func TestExport_FailsIfTheFileCannotBeWritten(t *testing.T) {
	from := options(many(t, 90))
	whole, _ := export(t, from)
	for _, share := range []int{0, 60, 99} {
		file := &cut{room: len(whole) * share / 100}
		_, err := transfer.Export(t.Context(), file, from)
		require.ErrorIs(t, err, errCut)
		_, err = transfer.Check(t.Context(), file, options(model(2)))
		require.ErrorAs(t, err, new(*transfer.CutOffError))
	}
}

func TestImport_TakesFilesThatSayWhereTheyGoOn(t *testing.T) {
	from, to := options(many(t, 90)), options(model(2))
	file, _ := export(t, from)
	file = bytes.ReplaceAll(file, []byte(`{"section":{`), []byte(`{"section":{"next":{"store":"main","shard":0},`))
	importFile(t, file, to)
	require.Equal(t, read(t, from, "default").jobs, read(t, to, "default").jobs)
}

func TestExport_OrderedQueuesKeepTheirOrder(t *testing.T) {
	now := time.Now()
	clocked := func(shards int) store.Store {
		return storetest.NewModel(storetest.ModelOptions{Shards: shards, Now: func() time.Time { return now }})
	}
	from, to := clocked(1), clocked(5)
	putTopic(t, from, "default", "ordered", policy.Topic{Ordered: true})
	var jobs []store.NewJob
	var wanted []string
	for i := range 200 {
		n := newJob(fmt.Sprint("job-", i), queues[6])
		n.Delay = time.Duration(i*37%200) * time.Millisecond // they are not due in the order of their registration
		jobs, wanted = append(jobs, n), append(wanted, n.ID)
	}
	insert(t, from, jobs...)
	file, _ := export(t, options(from))
	importFile(t, file, options(to))
	now = now.Add(time.Second)
	var got []string
	for {
		claimed := claim(t, to, queues[6], 10)
		if len(claimed) == 0 {
			break
		}
		got = append(got, claimed[0].ID)
		settle(t, to, claimed[0], policy.Verdict{Kind: policy.Delivered})
	}
	require.Equal(t, wanted, got)
}

func TestImport_InterruptedAndRepeated(t *testing.T) {
	from := options(many(t, 90))
	file, ledger := export(t, from)
	inner := model(4)
	to := options(&interrupted{Store: inner})
	refused := 0
	for {
		require.Less(t, refused, 20)
		to.Stores[0].Store.(*interrupted).left.Store(int64(3 * (refused + 1))) // a section has jobs of three queues
		result, err := transfer.Import(t.Context(), bytes.NewReader(file), to)
		if err == nil {
			require.Equal(t, ledger, result.Stored)
			require.Positive(t, result.Existing)
			require.EqualValues(t, 90, result.Existing+result.Created)
			break
		}
		require.ErrorIs(t, err, errCut)
		refused++
	}
	require.Positive(t, refused)
	require.Equal(t, read(t, from, "default").jobs, read(t, options(inner), "default").jobs)
}

// interrupted is a store of which some calls of PutRecords are carried out, and the next ones fail, every other behind
// its end.
type interrupted struct {
	store.Store

	left atomic.Int64
}

func (s *interrupted) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return interruptedShard{next, s} })
}

type interruptedShard struct {
	store.Shard
	*interrupted
}

func (s interruptedShard) PutRecords(
	ctx context.Context, token store.Token, records []store.Record,
) ([]store.Outcome, error) {
	switch left := s.left.Add(-1); {
	case left >= 0:
		return s.Shard.PutRecords(ctx, token, records)
	case left%2 == 0:
		_, _ = s.Shard.PutRecords(ctx, token, records)
	}
	return nil, errCut
}

func TestImport_RefusesWhatIsStoredOtherwise(t *testing.T) {
	from := model(1)
	putTopic(t, from, "default", "orders", policy.Topic{Workers: 3})
	insert(t, from, newJob("a", queues[0]), newJob("b", queues[0]))
	file, _ := export(t, options(from))
	other := func(q job.Queue) store.NewJob { // it may be registered in the same millisecond
		n := newJob("b", q)
		n.Body = []byte("another body")
		n.Fingerprint = codec.Fingerprint(&n.New)
		return n
	}

	for name, prepare := range map[string]func(s store.Store){
		"topic default/orders": func(s store.Store) { putTopic(t, s, "default", "orders", policy.Topic{Workers: 4}) },
		"job default/b":        func(s store.Store) { insert(t, s, other(queues[0])) },
	} {
		for _, q := range []job.Queue{queues[0], queues[2]} {
			to := model(16)
			prepare(to)
			if strings.HasPrefix(name, "job") && q != queues[0] {
				to = model(16)
				insert(t, to, other(q))
			}
			_, err := transfer.Check(t.Context(), bytes.NewReader(file), options(to))
			conflict, ok := errors.AsType[*transfer.ConflictError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, name, conflict.What)
			require.Contains(t, strings.Split(string(file), "\n")[conflict.Line-1],
				map[bool]string{true: `"id":"b"`, false: `"name":"orders"`}[strings.HasPrefix(name, "job")])
			require.NoError(t, transfer.CheckImports(t.Context(), to))
			_, err = transfer.Import(t.Context(), bytes.NewReader(file), options(to))
			if strings.HasPrefix(name, "topic") {
				require.ErrorAs(t, err, &conflict)
				require.NoError(t, transfer.CheckImports(t.Context(), to), "nothing was stored")
				continue
			}
			leftOut, ok := errors.AsType[*transfer.LeftOutError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, []string{fmt.Sprintf("default/b (line %d)", conflict.Line)}, leftOut.Some)
		}
	}
}

func TestImport_KeepsWhatHappenedSince(t *testing.T) {
	from := model(1)
	insert(t, from, newJob("a", queues[0]), newJob("b", queues[0]))
	file, _ := export(t, options(from))
	to := model(1)
	importFile(t, file, options(to))
	for _, c := range claim(t, to, queues[0], 10) {
		settle(t, to, c, policy.Verdict{Kind: policy.Delivered})
	}
	result := importFile(t, file, options(to))
	require.False(t, result.DoneAt.IsZero())
	require.Zero(t, result.Created)
	second, _ := export(t, options(from)) // of the same jobs
	_, err := transfer.Import(t.Context(), bytes.NewReader(second), options(to))
	require.ErrorAs(t, err, new(*transfer.StaleError), "they are there, and no longer pending")
	require.Empty(t, claim(t, to, queues[0], 10))
}

func TestImport_RefusesDamagedFiles(t *testing.T) {
	from := model(2)
	var jobs []store.NewJob
	for i := range 75 {
		jobs = append(jobs, newJob(fmt.Sprint("job-", i), queues[0]))
	}
	insert(t, from, jobs...)
	whole, _ := export(t, options(from))
	lines := strings.SplitAfter(strings.TrimSuffix(string(whole), "\n"), "\n")
	require.Greater(t, len(lines), 75)
	join := func(change func(lines []string) []string) string {
		return strings.Join(change(append([]string(nil), lines...)), "")
	}
	for name, c := range map[string]struct {
		file  string
		line  int
		error string
	}{
		"empty":           {"", 0, "cut off after line 0"},
		"no header":       {join(func(l []string) []string { return l[1:] }), 1, "ringback_export"},
		"truncated":       {string(whole[:len(whole)/2]), 0, "cut off after line"},
		"without the end": {join(func(l []string) []string { return l[:len(l)-1] }), 0, "cut off after line"},
		"a line is missing": {
			join(func(l []string) []string { return append(l[:9], l[10:]...) }), 32, "counts 32 lines",
		},
		"a section is missing": {join(func(l []string) []string { return append(l[:33], l[66:]...) }), 0, "must be 2"},
		"a byte is another": {
			strings.Replace(string(whole), "body of job-44", "body of job-45", 1), 0, "one of them is damaged",
		},
		"no JSON": {join(func(l []string) []string { l[19] = "{\"job\"\n"; return l }), 20, ""},
		"two values": {
			join(func(l []string) []string { l[19] = strings.TrimSpace(l[19]) + l[20]; return l }),
			20, "one JSON object",
		},
		"an unknown member": {join(func(l []string) []string {
			l[19] = strings.Replace(l[19], `"url"`, `"urls"`, 1)
			return l
		}), 20, "urls"},
		"an unknown kind": {join(func(l []string) []string { l[19] = "{\"jobs\":{}}\n"; return l }), 20, "jobs"},
		"two members": {
			join(func(l []string) []string { l[19] = "{\"job\":{},\"end\":{}}\n"; return l }), 20, "one of",
		},
		"a bad id": {join(func(l []string) []string {
			l[19] = strings.Replace(l[19], `"id":"`, `"id":"/`, 1)
			return l
		}), 20, "id is not valid"},
		"a running job": {join(func(l []string) []string {
			l[19] = strings.Replace(l[19], `"scheduled"`, `"running"`, 1)
			return l
		}), 20, "state must be"},
		"another format":     {strings.Replace(string(whole), `"format":1`, `"format":2`, 1), 1, "format 2"},
		"something after it": {string(whole) + "\n", len(lines) + 1, "after the last line"},
		"another ledger": {join(func(l []string) []string {
			l[len(l)-1] = strings.ReplaceAll(l[len(l)-1], "75", "76") + "\n"
			return l
		}), len(lines), "76 jobs"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := transfer.Check(t.Context(), strings.NewReader(c.file), options(model(1)))
			require.ErrorContains(t, err, c.error)
			if format, ok := errors.AsType[*transfer.FormatError](err); c.line > 0 {
				require.True(t, ok, "%v", err)
				require.Equal(t, c.line, format.Line)
			}
			to := options(model(1))
			result, err := transfer.Import(t.Context(), strings.NewReader(c.file), to)
			require.ErrorContains(t, err, c.error)
			require.Len(t, read(t, to, "default").jobs, int(result.Created), "nothing of a damaged section is stored")
			if name != "something after it" && name != "another ledger" && name != "without the end" {
				require.Less(t, result.Created, int64(75))
			}
		})
	}
}

func TestImport_BeginsAnewWithTheWholeFile(t *testing.T) {
	from := options(many(t, 90))
	file, ledger := export(t, from)
	to := options(model(2))
	_, err := transfer.Import(t.Context(), io.LimitReader(bytes.NewReader(file), int64(len(file)*2/3)), to)
	cutOff, ok := errors.AsType[*transfer.CutOffError](err)
	require.True(t, ok, "%v", err)
	require.Positive(t, cutOff.Line)
	result, err := transfer.Import(t.Context(), bytes.NewReader(file), to)
	require.NoError(t, err)
	require.Positive(t, result.Existing)
	require.EqualValues(t, 90, result.Existing+result.Created)
	require.Equal(t, ledger, result.Stored)
}

func TestLock_RefusesStoresInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model(3)
		insert(t, s, newJob("a", queues[0]))
		file, _ := export(t, options(s))
		stop := lead(t, s.Shards()[1])
		_, err := transfer.Export(t.Context(), io.Discard, options(s))
		require.ErrorAs(t, err, new(*transfer.InUseError))
		_, err = transfer.Import(t.Context(), bytes.NewReader(file), options(s))
		require.ErrorAs(t, err, new(*transfer.InUseError))
		stop()
		_, err = transfer.Export(t.Context(), io.Discard, options(s))
		require.NoError(t, err, "the lock of a process that died expires")
	})
}

// lead holds the carrier lock of a shard until stop.
func lead(t *testing.T, shard store.Shard) (stop func()) {
	t.Helper()
	leadership, err := shard.Lead(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for leadership.Extend(ctx) == nil && ctx.Err() == nil {
			time.Sleep(time.Second)
		}
	}()
	return cancel
}

func TestLock_IsHeldMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model(1)
		insert(t, s, newJob("a", queues[0]))
		slow := &changing{s, func() {
			time.Sleep(store.LeadershipTTL / 2) // one extension comes in between, and the next meets another leader
			l, err := s.Shards()[0].Lead(t.Context())
			require.ErrorIs(t, err, store.ErrNotLeader)
			require.Nil(t, l)
		}}
		_, err := transfer.Export(t.Context(), io.Discard, options(slow))
		require.NoError(t, err)
	})
}

// changing registers a job when the first records are read.
type changing struct {
	store.Store
	change func()
}

func (c *changing) Shards() []store.Shard {
	return storetest.WrapShards(c.Store, func(_ int, next store.Shard) store.Shard { return changingShard{next, c} })
}

type changingShard struct {
	store.Shard
	*changing
}

func (c changingShard) GetRecords(ctx context.Context, refs []job.Ref) ([]store.Record, error) {
	c.change()
	return c.Shard.GetRecords(ctx, refs)
}

func TestExport_NoticesChanges(t *testing.T) {
	s := model(1)
	insert(t, s, newJob("a", queues[0]))
	n := 0
	changed := &changing{s, func() { n++; insert(t, s, newJob(fmt.Sprint("new-", n), queues[2])) }}
	_, err := transfer.Export(t.Context(), io.Discard, options(changed))
	require.ErrorIs(t, err, transfer.ErrChanged)
}

func TestExport_LeavesSecretsOut(t *testing.T) {
	s := model(1)
	const secret = "very-secret"
	sealed := job.SealedValues("plain:\n" + secret)
	headers := map[string][]string{"Authorization": sealed, "X-Plain": {"shown"}}
	callback := &policy.Callback{URL: "https://o.example/", Headers: headers}
	putTopic(t, s, "default", "orders", policy.Topic{
		Headers: headers, Secrets: []policy.Secret{{ID: "1", Value: "plain:" + secret}}, OnDead: callback,
		OnBacklog:  &policy.Backlog{Callback: *callback, MoreThan: 1},
		ClientCert: &policy.ClientCert{Chain: "chain", Key: "plain:" + secret},
	})
	putLane(t, s, queues[0],
		policy.Lane{Headers: headers, Secrets: []policy.Secret{{ID: "1", Value: "plain:" + secret}}})
	spec, err := json.Marshal(job.Spec{Header: headers, URL: "https://a.example/"})
	require.NoError(t, err)
	put(t, s, store.KindSchedule, "default", "daily", `{"Job":`+string(spec)+`}`)
	put(t, s, tenancy.KindToken, "default", "abcdefgh", `{"name":"api","hash":"`+secret+`"}`)
	n := newJob("a", queues[0])
	n.Header, n.OnDead, n.OnDelivered = headers, callback, callback
	internal := newJob("rb:work:0123456789abcdefghijk",
		job.Queue{Namespace: "default", Topic: "_work", Lane: "default"})
	internal.Body = []byte(`{"header":{"Authorization":["\u0000plain:\n` + secret + `"]}}`)
	insert(t, s, n, internal)

	o := options(s)
	file, _ := export(t, o)
	require.Equal(t, 13, bytes.Count(file, []byte(secret)))
	o.WithoutSecrets = true
	file, _ = export(t, o)
	require.NotContains(t, string(file), secret)
	require.Contains(t, string(file), "shown")
	to := options(model(1))
	importFile(t, file, to)
	c := read(t, to, "default")
	sealedHeader, ok := job.Sealed(c.jobs[n.Ref()].Header["Authorization"])
	require.True(t, ok)
	_, err = seal.New().Open(sealedHeader, "headers/Authorization")
	require.ErrorIs(t, err, seal.ErrRemoved)
	var p policy.Topic
	require.NoError(t, json.Unmarshal([]byte(c.documents[store.DocumentKey{
		Kind:      store.KindTopic,
		Namespace: "default", Name: "orders",
	}]), &p))
	for _, removed := range []policy.Sealed{p.Secrets[0].Value, p.ClientCert.Key} {
		_, err = seal.New().Open(string(removed), "x")
		require.ErrorIs(t, err, seal.ErrRemoved)
	}
}

func TestImport_PlacesNamespacesOnStores(t *testing.T) {
	from := options(model(1), model(2))
	put(t, from.Stores[0], tenancy.KindNamespace, "default", "shop", `{"store":"eu"}`)
	insert(t, from.Stores[1].Store, newJob("a", queues[3]))
	insert(t, from.Stores[0].Store, newJob("a", queues[0]))
	file, ledger := export(t, from)
	require.Equal(t, transfer.Ledger{
		{Namespace: "default", Topic: "orders", State: "pending"}: 1,
		{Namespace: "shop", Topic: "orders", State: "pending"}:    1,
	}, ledger)

	_, err := transfer.Check(t.Context(), bytes.NewReader(file), options(model(1)))
	require.ErrorContains(t, err, "pass --store eu=URL")
	one := options(model(1))
	put(t, one.Stores[0], tenancy.KindNamespace, "default", "shop", `{"store":"main"}`)
	importFile(t, file, one)
	require.Equal(t, read(t, from, "default", "shop").jobs, read(t, one, "default", "shop").jobs)
}

func TestLedger_PrintsATable(t *testing.T) {
	a := transfer.Ledger{
		{Namespace: "default", Topic: "orders", State: "pending"}: 12,
		{Namespace: "default", Topic: "mails", State: "dead"}:     1,
	}
	b := maps.Clone(a)
	delete(b, transfer.Row{Namespace: "default", Topic: "mails", State: "dead"})
	require.Equal(t, strings.TrimLeft(`
NAMESPACE  TOPIC   STATE    FILE  STORE
default    mails   dead     1     0
default    orders  pending  12    12
`, "\n"), transfer.Table(transfer.Column{Title: "FILE", Ledger: a}, transfer.Column{Title: "STORE", Ledger: b}))
}
