package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/dispatcher/livetail"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// Jobs registers, finds and lists jobs.
type Jobs interface {
	// Register returns a result per job of a namespace, in order. Its errors are *job.InvalidError,
	// *job.UndeclaredTopicError, *job.TakenError and those of package store.
	Register(ctx context.Context, jobs []job.New) []store.RoutedResult
	Get(ctx context.Context, ref job.Ref) (job.Job, error)
	// WaitForEnd is Get once the job has ended, or after limit, or when the process stops. last is the job as Register
	// returned it, or one with its Ref. It returns a job that was removed when it ended as it was last, in the state in
	// which it ended, or store.ErrNotFound.
	WaitForEnd(ctx context.Context, last job.Job, limit time.Duration) (job.Job, error)
	// Explain returns what applies to an unfinished job now and what it waits for; nil if that is not known, or the job
	// has ended.
	Explain(ctx context.Context, j *job.Job) *job.Explanation
	List(ctx context.Context, filter store.Filter) (store.Page, error)
}

// Changes changes one job. Its errors are *job.InvalidError and those of package store.
type Changes interface {
	Edit(ctx context.Context, ref job.Ref, edit job.Edit) (job.Job, error)
	// RunNow makes a scheduled job due now. version is the one that the job must have; zero: any. actor is the name of
	// the client.
	RunNow(ctx context.Context, ref job.Ref, version int64, actor string) (job.Job, error)
	Revive(ctx context.Context, revival store.Revival) (job.Job, error)
	Cancel(ctx context.Context, ref job.Ref, cancellation store.Cancellation) (job.Job, error)
}

// Leases leases the jobs of pulled topics to clients, and settles what they report.
type Leases interface {
	// Lease returns none when there are none until the request's Wait is over, or the process stops. Errors:
	// *store.NotPulledError and those of package store and of overload.
	Lease(ctx context.Context, request store.LeaseRequest) ([]store.LeasedJob, error)
	// SettleLeases ends or extends up to store.MaxBatch leases of a namespace's clients, in order, and returns an error
	// for each: nil, store.ErrLeaseLost, store.ErrCancelRequested, or why the store is unavailable. Then it leases jobs
	// as next asks, as Lease does; nil: none.
	SettleLeases(
		ctx context.Context, namespace string, reports []store.LeaseReport, next *store.LeaseRequest,
	) ([]error, []store.LeasedJob, error)
	// ReleaseLeases makes leased jobs due again that their client has not received.
	ReleaseLeases(ctx context.Context, namespace string, leased []store.LeasedJob)
}

// Topics stores the policies of topics.
type Topics interface {
	// Topic returns the policy as it was put; an empty one of revision 0 for a topic that only jobs have named.
	Topic(ctx context.Context, namespace, name string) (store.Topic, error)
	// ChangeTopic calls change with the stored policy, empty for a new topic, and stores the result. It may call change
	// more than once; an error of change ends it. A client certificate's key is plain PEM if change sets it. Errors are
	// *job.InvalidError, *store.RevisionError, store.ErrContended and store.ErrUnreadable.
	ChangeTopic(
		ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*policy.Topic) error,
	) (store.Topic, error)
	// ReplaceTopic is ChangeTopic for a change that sets all fields, and does not fail with store.ErrUnreadable.
	ReplaceTopic(
		ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*policy.Topic) error,
	) (store.Topic, error)
	Topics(ctx context.Context, namespace, after string, limit int) ([]store.Topic, error)
	// DeleteTopic removes a topic. Errors: store.ErrNotFound, *store.RevisionError, *store.TopicInUseError,
	// store.ErrContended.
	DeleteTopic(ctx context.Context, deletion store.TopicDeletion) (store.TopicDeleted, error)
	// Effective returns a policy of a namespace with every default filled in.
	Effective(ctx context.Context, namespace string, p policy.Topic) policy.Topic
}

// Lanes stores the settings of lanes.
type Lanes interface {
	// Lane returns a lane's own settings; revision 0 when it has none.
	Lane(ctx context.Context, q job.Queue) (store.Lane, error)
	// ListLanes lists the lanes of a topic that have settings, in order of name, after a name. With the type of an
	// event it lists those that subscribe to it.
	ListLanes(ctx context.Context, namespace, topic, eventType, after string, limit int) ([]store.Lane, error)
	// ChangeLane works like ChangeTopic. Settings that are all unset are removed.
	ChangeLane(
		ctx context.Context, q job.Queue, opts store.ChangeOptions, change func(*policy.Lane) error,
	) (store.Lane, error)
	// ReplaceLane is ChangeLane for a change that sets or removes all settings, and does not fail with
	// store.ErrUnreadable.
	ReplaceLane(
		ctx context.Context, q job.Queue, opts store.ChangeOptions, change func(*policy.Lane) error,
	) (store.Lane, error)
}

// Secrets stores the secrets that sign attempts, of a lane or, for a queue without a lane, of a topic.
type Secrets interface {
	// AddSecret adds a secret as the newest; adding one again changes nothing. The result does not contain it.
	// The condition of opts is about the owner's settings.
	AddSecret(ctx context.Context, owner job.Queue, secret sign.Secret, opts store.ChangeOptions) (policy.Secret, error)
	Secrets(ctx context.Context, owner job.Queue) ([]policy.Secret, error)
	// RemoveSecret returns store.ErrNotFound when there is no such secret.
	RemoveSecret(ctx context.Context, owner job.Queue, id string, opts store.ChangeOptions) error
	// PublicKeys returns the public keys of an owner's asymmetric secrets.
	PublicKeys(ctx context.Context, owner job.Queue) ([]store.PublicKey, error)
}

// BulkWork counts many jobs, and changes them in the background.
type BulkWork interface {
	// Groups counts the jobs that a filter selects by some of their fields; GroupIDs those that ids name and that are
	// in one of some states.
	Groups(ctx context.Context, filter store.Filter, by store.GroupBy) (store.Groups, error)
	GroupIDs(
		ctx context.Context, namespace string, ids []string, states []job.State, by store.GroupBy,
	) (store.Groups, error)
	// GroupReplay counts the jobs that a replay would make.
	GroupReplay(ctx context.Context, namespace string, order store.WorkOrder, by store.GroupBy) (store.Groups, error)
	// StartWork starts work. Errors: *job.QuotaError, *job.InvalidError.
	StartWork(ctx context.Context, namespace string, order store.WorkOrder) (store.Work, error)
	Work(ctx context.Context, namespace, id string) (store.Work, error)
	// StopWork ends work after the step in progress. Stopping ended work changes nothing.
	StopWork(ctx context.Context, namespace, id, actor string) (store.Work, error)
	// ListWork returns a page of the work that shown selects. The page has no Jobs.
	ListWork(ctx context.Context, filter store.Filter, shown func(*store.Work) bool) ([]store.Work, store.Page, error)
}

// Counts returns numbers of jobs.
type Counts interface {
	TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error)
	Totals(ctx context.Context, namespace string) (store.TopicStats, error)
	LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]store.LaneStats, error)
	// History returns what became of the attempts of topics lately, in their order: see store.Counts.ReadHistory.
	History(ctx context.Context, namespace string, topics []string) ([]store.History, error)
	// WorstLanes returns the lanes of a topic of which the most attempts failed.
	WorstLanes(ctx context.Context, namespace, topic string, limit int) ([]store.WorstLane, error)
	// LaneCounts returns that of one lane; zero counts for an unknown one.
	LaneCounts(ctx context.Context, q job.Queue) (store.LaneStats, error)
}

// Events sends events, each of which makes a job for every lane that subscribes to it.
type Events interface {
	// SendEvents returns a result for each. Errors: those of a registration.
	SendEvents(ctx context.Context, namespace, actor string, all []store.EventSpec) []store.SentEvent
	// PreviewEvent returns an event as it would be sent now.
	PreviewEvent(ctx context.Context, namespace, actor string, e store.EventSpec) (store.Event, error)
	// Event returns an event with the states of its jobs. store.ErrNotFound.
	Event(ctx context.Context, namespace, id string) (store.Event, error)
	// WaitForEvent is Event once all jobs have ended, or after limit, or when the process stops.
	WaitForEvent(ctx context.Context, namespace, id string, limit time.Duration) (store.Event, error)
	// TestLane registers the job of an event for one lane. Errors are those of a registration.
	TestLane(ctx context.Context, q job.Queue, eventType, actor string) store.RoutedResult
	// ListEvents returns a page of the events that shown selects. The page has no Jobs.
	ListEvents(
		ctx context.Context, filter store.Filter, shown func(*store.Event) bool,
	) ([]store.Event, store.Page, error)
}

// LiveUpdates are attempts and changes as they happen, in all processes.
type LiveUpdates interface {
	// Listen returns a listener for the updates of a namespace, to be closed. Error: *capacity.FullError.
	Listen(ctx context.Context, filter livetail.Filter) (*livetail.Listener, error)
}

// Tokens stores tokens and namespaces. A change holds in all processes within 5 s.
type Tokens interface {
	stored
	// CreateToken stores a token and returns its text, which is not stored. reserved says that it may be one of those
	// that are reserved for root tokens. Error: *job.LimitError.
	CreateToken(ctx context.Context, token access.Token, reserved bool) (created access.Token, text string, err error)
	// Token, Tokens and RevokeToken concern the tokens of a namespace, or of all if it is empty. store.ErrNotFound.
	Token(ctx context.Context, namespace, id string) (access.Token, error)
	Tokens(ctx context.Context, namespace, after string, limit int) ([]access.Token, error)
	RevokeToken(ctx context.Context, namespace, id string) error
	// Namespace returns store.ErrNotFound for an unknown one; the default one is always known.
	Namespace(ctx context.Context, name string) (job.Namespace, error)
	Namespaces(ctx context.Context, after string, limit int) ([]job.Namespace, error)
	// PutNamespace stores a namespace. ifRevision is as for store.CheckCondition. Error: *job.LimitError.
	PutNamespace(ctx context.Context, n job.Namespace, ifRevision int64) (job.Namespace, error)
}

// Health says whether jobs are registered and delivered.
type Health interface {
	// Readiness returns that of each store, one or more.
	Readiness(ctx context.Context) []store.Readiness
}

// Schedules stores schedules, whose ticks register jobs.
type Schedules interface {
	// PutSchedule creates or replaces a schedule by change, which gets the stored one. Errors: that of
	// change, *job.InvalidError, *job.LimitError.
	PutSchedule(
		ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*store.Schedule) error,
	) (store.Schedule, error)
	// ChangeSchedule changes the pause or the backfill of a schedule. store.ErrNotFound.
	ChangeSchedule(
		ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*store.Schedule) error,
	) (store.Schedule, error)
	Schedule(ctx context.Context, namespace, name string) (store.Schedule, error)
	// ListSchedules returns schedules in order of name, at most limit after a name.
	ListSchedules(ctx context.Context, namespace, after string, limit int) ([]store.Schedule, error)
	// DeleteSchedule removes a schedule that check accepts.
	DeleteSchedule(
		ctx context.Context, namespace, name string, ifRevision int64, check func(*store.Schedule) error,
	) error
	// RunSchedule registers a job of a schedule that check accepts at once. Errors: those of a registration,
	// store.ErrNotFound.
	RunSchedule(
		ctx context.Context, namespace, name, actor string, check func(*store.Schedule) error,
	) (store.RoutedResult, error)
}

// Store is one store with the jobs and settings of its namespaces.
type Store interface {
	Jobs
	Changes
	Leases
	Topics
	Lanes
	Secrets
	BulkWork
	Schedules
	Events
	Counts
	LiveUpdates
	// TroubledLanes finds lanes whose receiver fails or that hold jobs back.
	TroubledLanes(ctx context.Context, filter store.TroubledFilter) (store.TroubledLanes, error)
	// DeleteNamespace removes a namespace, and returns what a purge removed, also with an error. Errors:
	// store.ErrNotFound, *job.NamespaceInUseError.
	DeleteNamespace(ctx context.Context, deletion store.NamespaceDeletion) (store.TopicDeleted, error)
	// NamespaceUsage counts what a namespace uses of what its quota bounds.
	NamespaceUsage(ctx context.Context, namespace string) (job.NamespaceUsage, error)
}

// Holders says on whose behalf requests are served.
type Holders interface {
	// HolderOf returns the holder of what a request of a namespace occupies, with the store if there are several.
	HolderOf(ctx context.Context, namespace string) capacity.Holder
}

// Service is the API's backend: the stores, with the tokens and the namespaces of all.
type Service interface {
	// FindStore returns the store of a namespace. Errors: store.ErrNotFound, store.ErrUnavailable.
	FindStore(ctx context.Context, namespace string) (Store, error)
	Holders
	Tokens
	Health
}

// Stores are a Service whose stores have a type of their own.
type Stores[S Store] interface {
	FindStore(ctx context.Context, namespace string) (S, error)
	Holders
	Tokens
	Health
}

// NewService returns the Service of stores, such as dispatcher.NewService returns.
func NewService[S Store](stores Stores[S]) Service { return service[S]{stores} }

type service[S Store] struct{ Stores[S] }

func (s service[S]) FindStore(ctx context.Context, namespace string) (Store, error) {
	return s.Stores.FindStore(ctx, namespace)
}

// Options configure the API.
type Options struct {
	// Service does the work.
	Service Service
	// Access selects the requests that are refused, and says whose the others are.
	Access AccessOptions
	// MaxBody bounds a job's body, in bytes. Zero: 256 KiB.
	MaxBody int64
	// MaxWaiting bounds the requests that wait for the end of a job or for jobs to lease. Zero: that of capacity.Waits.
	MaxWaiting int
	// Version is the program's version. Empty: dev.
	Version string
	// Commit is the revision of its source, GoVersion that of its compiler. Empty: unknown.
	Commit, GoVersion string
	// Process is the name of the process in attempts. Empty: it does not deliver.
	Process string
	// HealthOnly serves only the routes that are always served, for a process that only delivers: health, metrics,
	// version, contract. Of the Service it uses Readiness, and for /v1/version Authenticate and HasNamespace.
	HealthOnly bool
	// Tracer makes the spans of requests that register jobs. Nil: none are made.
	Tracer Tracer
	// Metrics serves /metrics, without a token unless Access has MetricsTokens. Nil: 404.
	Metrics http.Handler
	// Console returns the handler of the paths below /console/, to which / leads browsers. It is given the API's
	// routes, to call them in this process, and a function that registers one for the server's shutdown, like
	// context.AfterFunc. Nil, or with HealthOnly: there is no console.
	Console func(routes http.Handler, onShutdown func(func()) (stop func() bool)) http.Handler
	// Closing reports whether the process is about to stop. Answers then close their connection. It is called for every
	// request, concurrently. Nil: never.
	Closing func() bool
	// Logger receives errors that clients did not cause. Nil: slog.Default.
	Logger *slog.Logger
}

// defaultMaxBody is the default of Options.MaxBody.
const defaultMaxBody = 256 << 10

// api is the state of the handlers.
type api struct {
	service      Service
	maxBody      int64
	version      string
	commit       string
	goVersion    string
	process      string
	healthOnly   bool
	hasConsole   bool
	metrics      http.Handler
	tracer       Tracer
	log          *slog.Logger
	callers      *authenticator
	readiness    readiness
	bodies       *limits.BodyBudget
	lists        limits.Lists
	overloadLog  logs.Limited
	forbiddenLog logs.Limited
	batch        *batchHandler
	// waiting counts requests that wait for the end of a job or for jobs to lease. leaseWaits is its part for the
	// latter, since consumers may wait all the time.
	waiting, leaseWaits *capacity.Semaphore
	// closing reports whether the process is about to stop.
	closing func() bool
	// onShutdown registers a function for the server's shutdown, like context.AfterFunc.
	onShutdown func(func()) (stop func() bool)
}

// New returns the handler. It panics without a Service.
func New(o Options) http.Handler {
	if o.Service == nil {
		panic("api: there is no service to put the API in front of")
	}
	a, end := newAPI(o)
	return a.handler(o, end)
}

// newAPI makes the state of the handlers. end ends streams.
func newAPI(o Options) (a *api, end func()) {
	life, end := context.WithCancel(context.Background())
	maxBody, waiting := cmp.Or(o.MaxBody, defaultMaxBody), capacity.Waits.Semaphore(o.MaxWaiting)
	a = &api{
		service:    o.Service,
		maxBody:    maxBody,
		version:    cmp.Or(o.Version, "dev"),
		commit:     o.Commit,
		goVersion:  o.GoVersion,
		process:    o.Process,
		healthOnly: o.HealthOnly,
		hasConsole: o.Console != nil && !o.HealthOnly,
		metrics:    o.Metrics,
		tracer:     o.Tracer,
		log:        cmp.Or(o.Logger, slog.Default()),
		waiting:    waiting,
		leaseWaits: waiting.Part(capacity.LeaseWaits, max(1, waiting.Whole()*3/4)),
		readiness:  readiness{turn: make(chan struct{}, 1)},
		// the share of a namespace has room for a request of any size
		bodies:     limits.NewBodyBudget(max(int64(capacity.LargeBodies.Whole), (request.Limit(maxBody)+1)*3/2)),
		onShutdown: func(f func()) func() bool { return context.AfterFunc(life, f) },
	}
	if a.closing = o.Closing; a.closing == nil {
		a.closing = func() bool { return false }
	}
	a.overloadLog.Logger, a.forbiddenLog.Logger = a.log, a.log
	a.callers = newAuthenticator(o.Access, o.Service, a.log)
	a.batch = newBatch(batchOptions{
		Register: a.registerAll, Callers: a.callers, Holder: a.holderOf, MaxBody: a.maxBody,
		OnShutdown: a.onShutdown, Overloaded: a.warnOverload, Logger: a.log,
	})
	return a, end
}

// handler returns the routes behind the guard.
func (a *api) handler(o Options, end func()) http.Handler {
	mux := http.NewServeMux()
	open := make(map[string]bool) // paths that need no token
	for _, r := range a.routes() {
		open[r.path] = !r.any(func(e endpoint) bool { return e.action != access.Open })
		if !o.HealthOnly || r.any(func(e endpoint) bool { return e.always }) {
			pattern := r.path
			if pattern == "/" {
				pattern = "/{$}" // not the paths below it
			}
			mux.Handle(pattern, a.methods(r))
		}
	}
	notFound := a.handle(a.notFound, false)
	mux.Handle("/", notFound)
	routes := cleanOnly(mux, notFound)
	handler := markOpen(open, routes)
	if a.hasConsole {
		handler = besideConsole(handler, o.Console(routes, a.onShutdown))
	}
	return &shutdownHandler{next: Guard(handler, o.Access, a.log), closing: a.closing, end: end}
}
