package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// Jobs takes, finds and lists jobs.
type Jobs interface {
	// Register answers a result for each job, in order. An Err is a *job.InvalidError, a *job.UndeclaredTopicError, or
	// one of package store.
	Register(ctx context.Context, jobs []job.New) []store.RoutedResult
	Get(ctx context.Context, ref job.Ref) (job.Job, error)
	List(ctx context.Context, filter store.Filter) (store.Page, error)
}

// Changes changes the course of one job. Errors are those of package store, and a *job.InvalidError.
type Changes interface {
	Edit(ctx context.Context, ref job.Ref, edit store.Edit) (job.Job, error)
	Revive(ctx context.Context, revival store.Revival) (job.Job, error)
	Cancel(ctx context.Context, ref job.Ref) (job.Job, error)
}

// Topics keeps the policies of topics.
type Topics interface {
	// Topic gives the policy as it was put; an empty one, of revision 0, for a topic that only jobs have named.
	Topic(ctx context.Context, namespace, name string) (store.Topic, error)
	// ChangeTopic has change work on the stored policy (an empty one of a topic that nobody has named) and puts what comes
	// of it; change may be called more than once, and its error ends it. A *job.InvalidError, store.ErrContended. The key
	// of a client certificate that change gives is in the open (PEM), or as it was.
	ChangeTopic(ctx context.Context, namespace, name string, change func(*policy.Topic) error) (store.Topic, error)
	Topics(ctx context.Context, namespace, after string, limit int) ([]store.Topic, error)
	// Effective fills in every default.
	Effective(policy.Topic) policy.Topic
}

// Lanes keeps the settings of lanes.
type Lanes interface {
	// Lane gives a lane's own settings; revision 0 when it has none.
	Lane(ctx context.Context, q job.Queue) (store.Lane, error)
	// ListLanes lists the lanes of a topic that have settings of their own, in order of name, beginning after a name.
	ListLanes(ctx context.Context, namespace, topic, after string, limit int) ([]store.Lane, error)
	// ChangeLane is to lanes what ChangeTopic is to topics. Settings that say nothing are removed.
	ChangeLane(ctx context.Context, q job.Queue, change func(*policy.Lane) error) (store.Lane, error)
}

// Secrets keeps what attempts are signed with.
type Secrets interface {
	// AddSecret puts a secret before the others; the same one again changes nothing. What it answers does not show it.
	AddSecret(ctx context.Context, owner store.SecretOwner, secret sign.Secret) (policy.Secret, error)
	Secrets(ctx context.Context, owner store.SecretOwner) ([]policy.Secret, error)
	// RemoveSecret answers store.ErrNotFound when there is no such.
	RemoveSecret(ctx context.Context, owner store.SecretOwner, id string) error
	// PublicKeys are those of an owner's secrets that have one.
	PublicKeys(ctx context.Context, owner store.SecretOwner) ([]store.PublicKey, error)
}

// DeadLetters works with jobs that died.
type DeadLetters interface {
	// Dead lists those of a topic, or (an empty one) of all.
	Dead(ctx context.Context, filter store.Filter) (store.Page, error)
	// ReviveDead and PurgeDead go on for as long as ctx leaves time, and say whether there is more.
	ReviveDead(ctx context.Context, which store.Selection, how store.RevivePlan) (store.BulkResult, error)
	PurgeDead(ctx context.Context, which store.Selection) (store.BulkResult, error)
}

// Counts counts jobs.
type Counts interface {
	TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error)
	Totals(ctx context.Context, namespace string) (store.TopicStats, error)
	LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]store.LaneStats, error)
}

// Health tells whether jobs are taken and delivered; the error says why not.
type Health interface {
	Ready(ctx context.Context) error
}

// Service is what the API is in front of.
type Service interface {
	Jobs
	Changes
	Topics
	Lanes
	Secrets
	DeadLetters
	Counts
	Health
}

// Options say what the API serves and to whom.
type Options struct {
	// Service does the work.
	Service Service
	// Token is what clients must show for everything under /v1; empty: nothing.
	Token Token
	// MaxBody bounds a job's body, in bytes; zero: 256 KiB.
	MaxBody int64
	// BodyBytes bounds the bytes of requests' bodies that are in memory at a time, above 64 KiB each: more are refused
	// with 503. One of the largest size always fits. Zero: 48 MiB.
	BodyBytes int64
	// Version is what /v1/version answers; empty: dev.
	Version string
	// Loopback serves only requests that are addressed to localhost, a loopback address or one of Hosts, so that no web page
	// reaches the API through a name of its own that resolves to this machine. For listeners on loopback.
	Loopback bool
	// CheckHost does the same for listeners beyond loopback, with any address in place of loopback's. For those that need no
	// token.
	CheckHost bool
	// Hosts are the further names that Loopback and CheckHost let pass, without a port.
	Hosts []string
	// HealthOnly serves /healthz, /readyz, /metrics, /v1/version and /openapi.yaml alone, for a process that only delivers:
	// its Service is asked for nothing but its readiness.
	HealthOnly bool
	// Metrics serves /metrics, without the token, like /healthz; nil: nothing is there.
	Metrics http.Handler
	// Closing, while it answers true, has every answer ask clients to give up their connection, so that they leave
	// before the port closes; nil: never. It is called with every request, by many at once.
	Closing func() bool
	// Logger is told of faults that are not the client's; nil: slog.Default.
	Logger *slog.Logger
}

// defaultMaxBody is the largest body of a job, in bytes.
const defaultMaxBody = 256 << 10

// api is what the handlers share.
type api struct {
	service     Service
	maxBody     int64
	version     string
	healthOnly  bool
	metrics     http.Handler
	log         *slog.Logger
	bodies      *request.BodyBudget
	lists       *listLimiter
	overloadLog limitedLog
	// streams holds one for each stream under way.
	streams chan struct{}
	// onShutdown has a function called when the server is shut down, as context.AfterFunc does.
	onShutdown func(func()) (stop func() bool)
}

// New makes the handler. It panics without a Service.
func New(o Options) http.Handler {
	if o.Service == nil {
		panic("api: there is no service to put the API in front of")
	}
	a, end := newAPI(o)
	return a.handler(o, end)
}

// newAPI makes what the handlers share; end ends streams.
func newAPI(o Options) (a *api, end func()) {
	life, end := context.WithCancel(context.Background())
	a = &api{
		service:    o.Service,
		maxBody:    cmp.Or(o.MaxBody, defaultMaxBody),
		version:    cmp.Or(o.Version, "dev"),
		healthOnly: o.HealthOnly,
		metrics:    o.Metrics,
		log:        cmp.Or(o.Logger, slog.Default()),
		streams:    make(chan struct{}, maxStreams),
		bodies:     request.NewBodyBudget(cmp.Or(o.BodyBytes, request.DefaultBodyBytes), max(request.MaxBatchBytes, request.Limit(cmp.Or(o.MaxBody, defaultMaxBody)))+1),
		lists:      newListLimiter(),
		onShutdown: func(f func()) func() bool { return context.AfterFunc(life, f) },
	}
	a.overloadLog.log = a.log
	return a, end
}

// handler puts the routes behind the guard.
func (a *api) handler(o Options, end func()) http.Handler {
	mux := http.NewServeMux()
	for _, r := range a.routes() {
		if r.always || !o.HealthOnly {
			mux.Handle(r.path, a.methods(r))
		}
	}
	mux.Handle("/", a.handle(a.notFound))
	g := &guard{next: mux, loopback: o.Loopback, checkHost: o.CheckHost}
	g.unauthorized.log, g.refused.log = a.log, a.log
	for _, host := range o.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(strings.TrimSuffix(host, ".")))
	}
	if o.Token != "" {
		g.token = o.Token.sum()
		g.needsToken = true
	}
	if o.Closing == nil {
		o.Closing = func() bool { return false }
	}
	return &shutdownHandler{next: g, closing: o.Closing, end: end}
}
