package arch

// row lists the imports that a package may have from this module (ours) and from other modules (others). The standard
// library is always allowed. Tests may import more.
type row struct {
	pkg    string
	reason string
	ours   []string
	others []string
}

// plan is the import table. A row may only name rows above it. A package without a row fails the test.
var plan = []row{
	{
		pkg: "internal/logs",
		reason: "bounds log lines, keeps a log reader from blocking the process, and has the type of secrets " +
			"that print as [redacted]; knows nothing else",
	},
	{
		pkg: "internal/utf8text",
		reason: "byte order marks, UTF-16 and characters that would not be seen, for all that read or show " +
			"texts; knows nothing of what they say",
	},
	{
		pkg:    "internal/typo",
		reason: "what a misspelt name was meant to be, wherever names are refused; knows no names",
		others: []string{"github.com/agnivade/levenshtein"},
	},
	{
		pkg: "internal/fileread",
		reason: "reads files with secrets and files in PEM, and sees that a file has changed; knows no " +
			"file's use",
		ours: []string{"internal/utf8text"},
	},
	{
		pkg:    "internal/capacity",
		reason: "the bounds of a process and their shares, counted; knows nothing of what holds them",
	},
	{
		pkg: "policy",
		reason: "decisions are pure, so that a table can hold all of them: no clock, no job, only how texts " +
			"are read",
		ours: []string{"internal/utf8text"},
	},
	{
		pkg: "sign",
		reason: "signs and verifies requests; public, receivers import it too, so it needs the standard " +
			"library alone",
	},
	{
		pkg: "client/internal/wire",
		reason: "the JSON of the API as the client has it; part of a public package, so it needs the " +
			"standard library alone",
	},
	{
		pkg: "client/internal/stream",
		reason: "what the client's long requests are made of: lines sent and read at once, events, retries, " +
			"batches, work; part of a public package",
	},
	{
		pkg: "client",
		reason: "the Go client of the API; public, programs import it, so it needs the standard library " +
			"alone and nothing of the server",
		ours: []string{"client/internal/stream", "client/internal/wire"},
	},
	{
		pkg: "client/outbox",
		reason: "registers jobs in transactions of a program's database; public, so it brings no driver and " +
			"nothing but the client",
		ours: []string{"client", "client/internal/stream"},
	},
	{
		pkg:    "dispatcher/seal",
		reason: "encrypts secrets where they are kept; knows nothing of what they are for",
		others: []string{"golang.org/x/crypto"},
	},
	{
		pkg:    "job/units",
		reason: "durations, sizes and rates as texts; knows no field",
		ours:   []string{"policy"},
	},
	{
		pkg:    "job",
		reason: "what everything is about; embeds the terms that policy decides over",
		ours:   []string{"job/units", "policy"},
		others: []string{"github.com/go-playground/validator/v10"},
	},
	{
		pkg: "job/schedule",
		reason: "the ticks of cron texts and intervals, time zones; pure, so that all processes agree and " +
			"tables can hold it",
		ours: []string{"job"},
	},
	{
		pkg: "internal/access",
		reason: "who may do what, as pure functions of tokens and roles, so that a table can hold all of it; " +
			"knows no request",
		ours: []string{"job"},
	},
	{
		pkg:    "job/codec",
		reason: "the stored form of what a job asks for, described once; knows no engine",
		ours:   []string{"job", "policy"},
	},
	{
		pkg:    "store",
		reason: "the contract of an engine; knows no engine",
		ours:   []string{"job", "job/codec", "job/schedule", "policy"},
	},
	{
		pkg:    "store/router",
		reason: "calls the right shards of any store, a few times for many jobs; knows no engine",
		ours:   []string{"job", "policy", "store"},
	},
	{
		pkg: "store/sqlite/db",
		reason: "one SQLite file in use: its files and their locks, connections, the writer, readers, log, " +
			"copies; knows neither jobs nor their tables",
		ours:   []string{"store"},
		others: []string{"github.com/gofrs/flock", "modernc.org/sqlite"},
	},
	{
		pkg:    "store/sqlite/clock",
		reason: "wall and monotonic time in integers, and the wall clock being set; knows jobs by number only",
	},
	{
		pkg:    "store/sqlite/table",
		reason: "the tables, their statements and rows of jobs; decides nothing and keeps no state",
		ours:   []string{"job", "job/codec", "policy", "store/sqlite/clock", "store/sqlite/db"},
	},
	{
		pkg:    "store/sqlite/memory",
		reason: "what the writer knows of queues, topics and leases, as plain data; asks no database",
		ours: []string{
			"job", "policy", "store", "store/sqlite/clock", "store/sqlite/db", "store/sqlite/table",
		},
	},
	{
		pkg:    "store/sqlite/unit",
		reason: "the unit of work: what one transaction reads and writes of the engine's records",
		ours: []string{
			"job", "policy", "store", "store/sqlite/clock", "store/sqlite/db", "store/sqlite/memory",
			"store/sqlite/table",
		},
	},
	{
		pkg:    "store/sqlite",
		reason: "an engine, used through the contract only",
		ours: []string{
			"internal/logs", "job", "job/codec", "policy", "store", "store/sqlite/clock", "store/sqlite/db",
			"store/sqlite/memory", "store/sqlite/table", "store/sqlite/unit",
		},
	},
	{
		pkg: "store/redis/connect",
		reason: "connections to Redis servers; knows neither keys' meaning nor scripts, so it can be read " +
			"and tested alone",
		ours:   []string{"internal/fileread", "job", "store"},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	{
		pkg: "store/redis/layout",
		reason: "keys, records and the other stored forms; does no I/O and imports no client, so that tables " +
			"can hold it",
		ours:   []string{"job", "job/codec", "policy", "store", "store/redis/connect"},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	{
		pkg:    "store/redis/shard",
		reason: "what all operations on a shard share; knows no operation",
		ours:   []string{"internal/logs", "job", "store", "store/redis/connect", "store/redis/layout"},
	},
	{
		pkg:    "store/redis/health",
		reason: "watches servers and data beside the calls; knows no jobs",
		ours:   []string{"store", "store/redis/connect", "store/redis/layout", "store/redis/shard"},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	{
		pkg:    "store/redis/settings",
		reason: "store.Settings and the limits that scripts read; knows no jobs",
		ours: []string{
			"job", "policy", "store", "store/redis/connect", "store/redis/layout", "store/redis/shard",
		},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	{
		pkg:    "store/redis/counts",
		reason: "store.Counts; changes nothing",
		ours: []string{
			"job", "policy", "store", "store/redis/connect", "store/redis/layout", "store/redis/shard",
		},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	{
		pkg:    "store/redis/jobs",
		reason: "store.Jobs",
		ours: []string{
			"job", "job/codec", "store", "store/redis/connect", "store/redis/health", "store/redis/layout",
			"store/redis/shard",
		},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	{
		pkg:    "store/redis/queue",
		reason: "store.Queue",
		ours: []string{
			"job", "policy", "store", "store/redis/connect", "store/redis/layout", "store/redis/settings",
			"store/redis/shard",
		},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	{
		pkg:    "store/redis/repair",
		reason: "repairs a shard after a crash; moves nothing that is due",
		ours: []string{
			"store", "store/redis/connect", "store/redis/health", "store/redis/layout", "store/redis/shard",
		},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	{
		pkg:    "store/redis/keeper",
		reason: "store.Keeper, but for repairs",
		ours: []string{
			"internal/logs", "job", "store", "store/redis/connect", "store/redis/layout", "store/redis/repair",
			"store/redis/settings", "store/redis/shard",
		},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	{
		pkg:    "store/redis/tail",
		reason: "store.Tail; knows neither jobs nor what the messages say",
		ours:   []string{"store", "store/redis/layout"},
	},
	{
		pkg:    "store/redis",
		reason: "an engine, like store/sqlite: the sum of its packages",
		ours: []string{
			"job", "policy", "store", "store/redis/connect", "store/redis/counts", "store/redis/health",
			"store/redis/jobs", "store/redis/keeper", "store/redis/layout", "store/redis/queue",
			"store/redis/repair", "store/redis/settings", "store/redis/shard", "store/redis/tail",
		},
	},
	{
		pkg: "internal/testkit",
		reason: "which tests run, how long they wait, what they log, and the go command with the flags of " +
			"the build",
	},
	{
		pkg: "store/storetest",
		reason: "the suite that every engine must pass and the model it is compared with; knows no engine, " +
			"never shipped",
		ours:   []string{"internal/testkit", "job", "job/codec", "policy", "store", "store/router"},
		others: []string{"github.com/stretchr/testify", "pgregory.net/rapid"},
	},
	{
		pkg:    "carrier",
		reason: "moves due jobs; knows neither the content nor the outcome of a job",
		ours:   []string{"store", "store/router"},
	},
	{
		pkg:    "notify/guard",
		reason: "decides which addresses may be called; knows names and addresses, neither jobs nor connections",
		others: []string{"golang.org/x/text/unicode/norm"},
	},
	{
		pkg:    "notify/h1",
		reason: "HTTP/1.1 over one connection; knows neither jobs nor how connections are made",
	},
	{
		pkg: "notify/conn",
		reason: "opens, shares and bounds connections; of a job it knows the queue, so that queues share " +
			"none over HTTP/1",
		ours: []string{"internal/fileread", "job", "notify/guard", "notify/h1"},
	},
	{
		pkg:    "notify",
		reason: "one request at a time; knows nothing of stores, so that no store can slow it down",
		ours:   []string{"job", "notify/conn", "notify/guard", "notify/h1", "policy"},
		others: []string{"github.com/hashicorp/go-retryablehttp"},
	},
	{
		pkg: "pool/sched",
		reason: "decides what a pool claims and starts; a data structure without locks, goroutines or clock, " +
			"tested alone",
		ours: []string{"internal/capacity", "job", "policy", "store"},
	},
	{
		pkg:    "pool",
		reason: "claims, hands to a deliverer that it declares, settles; knows neither HTTP nor the carrier",
		ours:   []string{"internal/capacity", "internal/logs", "job", "policy", "pool/sched", "store"},
		others: []string{"github.com/sony/gobreaker/v2"},
	},
	{
		pkg: "dispatcher/livetail",
		reason: "events from the processes where they happen to the clients that watch; knows neither the " +
			"pool nor HTTP",
		ours: []string{"internal/access", "internal/capacity", "internal/logs", "job", "policy", "store"},
	},
	{
		pkg:    "dispatcher/secrets",
		reason: "seals the secrets of settings and jobs, and opens them for attempts; asks no store",
		ours:   []string{"dispatcher/seal", "internal/logs", "job", "policy", "sign", "store"},
	},
	{
		pkg:    "dispatcher/documents",
		reason: "caches the documents of one kind; knows none of the kinds",
		ours:   []string{"dispatcher/secrets", "job", "policy", "store"},
	},
	{
		pkg:    "dispatcher/internaljobs",
		reason: "claims internal jobs, runs Go functions that it is given, settles; knows no kind of work",
		ours:   []string{"internal/capacity", "job", "policy", "store"},
	},
	{
		pkg: "dispatcher/events",
		reason: "makes the jobs of events, in steps of internal jobs; declares what it needs of the store and of " +
			"registrations",
		ours: []string{"dispatcher/documents", "dispatcher/internaljobs", "job", "policy", "store"},
	},
	{
		pkg: "dispatcher/obstacles",
		reason: "what keeps jobs and lanes from running, in words; reads counts and settings, of many lanes " +
			"within a budget, and changes nothing",
		ours: []string{
			"dispatcher/documents", "dispatcher/seal", "dispatcher/secrets", "internal/logs", "job", "job/units",
			"policy", "pool", "store", "store/router",
		},
	},
	{
		pkg:    "dispatcher/pull",
		reason: "leases jobs to clients and settles what they report; knows no HTTP",
		ours:   []string{"dispatcher/documents", "internal/logs", "job", "policy", "pool", "store"},
	},
	{
		pkg: "dispatcher/schedules",
		reason: "makes the ticks of schedules, in steps of internal jobs; declares what it needs of the " +
			"store and of registrations",
		ours: []string{
			"dispatcher/internaljobs", "job", "job/codec", "job/schedule", "policy", "store",
		},
	},
	{
		pkg:    "dispatcher/tenancy",
		reason: "tokens and namespaces in the store; decisions about them are made in access",
		ours:   []string{"dispatcher/documents", "internal/access", "job", "policy", "store"},
	},
	{
		pkg:    "dispatcher/work",
		reason: "bulk work as steps of an internal job; declares what it needs of the store",
		ours:   []string{"dispatcher/internaljobs", "job", "policy", "store"},
	},
	{
		pkg: "dispatcher",
		reason: "puts carrier and pool to work on a store, or on several beside each other; a library for others, " +
			"so it picks no engine and no sender",
		ours: []string{
			"carrier", "dispatcher/documents", "dispatcher/events", "dispatcher/internaljobs", "dispatcher/livetail",
			"dispatcher/obstacles", "dispatcher/pull", "dispatcher/schedules", "dispatcher/seal",
			"dispatcher/secrets", "dispatcher/tenancy", "dispatcher/work", "internal/access", "internal/capacity",
			"internal/logs", "job", "job/codec", "job/units", "policy", "pool", "sign", "store", "store/router",
		},
		others: []string{"golang.org/x/text/unicode/norm"},
	},
	{
		pkg:    "internal/audit",
		reason: "looks at stores twice and reports what is wrong; knows no engine",
		ours:   []string{"dispatcher/schedules", "job", "store"},
	},
	{
		pkg:    "internal/doctor",
		reason: "findings and bounded checks; given what it looks at, and knows no engine and no flags",
		ours: []string{
			"internal/fileread", "internal/utf8text", "sign", "store/redis/connect", "store/redis/layout",
			"store/sqlite/db", "store/sqlite/table",
		},
		others: []string{"github.com/redis/go-redis/v9"},
	},
	{
		pkg:    "dispatcher/metrics",
		reason: "counters, histograms and their page; wraps a store and observes the pool",
		ours:   []string{"job", "policy", "pool", "store"},
		others: []string{"github.com/prometheus/client_golang"},
	},
	{
		pkg:    "dispatcher/tracing",
		reason: "spans of registrations and attempts, by the API of OpenTelemetry; knows no exporter",
		ours:   []string{"job", "policy", "pool", "store"},
		others: []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/trace"},
	},
	{
		pkg:    "dispatcher/tracing/otlp",
		reason: "exports spans; knows nothing of jobs",
		ours:   []string{"internal/fileread", "internal/logs"},
		others: []string{
			"github.com/hashicorp/go-retryablehttp", "go.opentelemetry.io/otel",
			"go.opentelemetry.io/otel/exporters/otlp/otlptrace", "go.opentelemetry.io/otel/sdk",
			"go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf",
		},
	},
	{
		pkg:    "api/response",
		reason: "writes JSON and problems; knows no handler and no service",
		ours: []string{
			"dispatcher/livetail", "internal/access", "internal/capacity", "job", "job/schedule", "job/units",
			"policy", "store",
		},
	},
	{
		pkg:    "api/limits",
		reason: "bounds what clients may occupy of a process; knows the paths of probes, no others, and no jobs",
		ours:   []string{"api/response", "internal/capacity", "internal/logs"},
	},
	{
		pkg:    "api/request",
		reason: "reads requests within limits; refuses with a problem, and knows no handler and no service",
		ours: []string{
			"api/limits", "api/response", "dispatcher/livetail", "internal/access", "internal/capacity",
			"internal/fileread", "internal/typo", "internal/utf8text", "job", "job/schedule", "job/units", "policy",
			"sign", "store",
		},
	},
	{
		pkg:    "api",
		reason: "HTTP in front of an interface that it declares; of the store it knows types and errors",
		ours: []string{
			"api/limits", "api/request", "api/response", "dispatcher/livetail", "internal/access",
			"internal/capacity", "internal/logs", "internal/utf8text", "job", "job/schedule", "policy", "sign",
			"store",
		},
		others: []string{"github.com/DataDog/datadog-agent/pkg/template", "go.yaml.in/yaml/v3"},
	},
	{
		pkg:    "console/assets",
		reason: "static files, the same for every page; knows no page",
	},
	{
		pkg:    "dispatcher/transfer",
		reason: "moves jobs and settings between open stores by a file; knows neither engines nor files' names",
		ours: []string{
			"dispatcher/schedules", "dispatcher/seal", "dispatcher/tenancy", "dispatcher/work", "job", "policy",
			"store", "store/router",
		},
	},
	{
		pkg: "console/words",
		reason: "how the console says numbers, times and codes: pure functions, so that tables can test " +
			"them; the standard library alone",
	},
	{
		pkg: "console/chart",
		reason: "the console's pictures as SVG: pure functions, so that golden files and random arguments " +
			"can test them",
		ours: []string{"console/words"},
	},
	{
		pkg:    "console/web",
		reason: "what pages of the console are made of: they know the API's client, and not how they are served",
		ours:   []string{"client", "console/words", "internal/access", "internal/utf8text"},
		others: []string{"github.com/DataDog/datadog-agent/pkg/template"},
	},
	{
		pkg: "console/filter",
		reason: "filters of jobs between URLs, forms, requests and words: pure functions that are given the " +
			"time, so that tables can test them",
		ours: []string{"client", "console/web", "console/words"},
	},
	{
		pkg: "console",
		reason: "a client of the API in the same process: reaches jobs and settings through requests alone, " +
			"so what a token may see and do is decided once",
		ours: []string{
			"api/limits", "client", "console/assets", "console/web", "console/words", "internal/access",
			"internal/capacity", "internal/logs", "job",
		},
		others: []string{"github.com/DataDog/datadog-agent/pkg/template"},
	},
	{
		pkg:    "console/form",
		reason: "makes forms of the client's types: pure, so that tables can hold every field; knows no page",
		ours:   []string{"client", "console/web", "console/words"},
	},
	{
		pkg: "console/recent",
		reason: "what several pages show of the recent past, and answers that they share; knows no page, so " +
			"that it can be tested alone in fake time",
		ours: []string{"client", "console/chart", "console/words"},
	},
	{
		pkg: "console/jobpages",
		reason: "the pages about jobs: clients of the API like all pages, so they know neither the " +
			"dispatcher nor who serves them",
		ours: []string{
			"client", "console/filter", "console/form", "console/recent", "console/web", "console/words",
			"internal/access",
		},
	},
	{
		pkg: "console/schedulepages",
		reason: "the pages about schedules: computes the ticks that its pictures show, and asks the API for " +
			"everything else",
		ours: []string{
			"client", "console/chart", "console/form", "console/web", "console/words", "internal/access",
			"job/schedule",
		},
	},
	{
		pkg: "console/settingspages",
		reason: "pages about the reader, the process, tokens and namespaces; what the API does not know " +
			"about the process is given to it",
		ours: []string{
			"client", "console/form", "console/web", "console/words", "internal/access", "internal/doctor", "job/units",
		},
	},
	{
		pkg:    "console/topicpages",
		reason: "pages about topics and lanes; like all pages they reach them through the API's client alone",
		ours: []string{
			"client", "console/form", "console/recent", "console/web", "console/words", "internal/access", "job",
		},
	},
	{
		pkg:    "console/nowpage",
		reason: "the first page; like all pages it reaches jobs through the API's client alone",
		ours: []string{
			"client", "console/recent", "console/web", "console/words", "internal/access", "job",
		},
	},
	{
		pkg:    "internal/inbox",
		reason: "a receiver to try things out with; of jobs it knows which headers are secret",
		ours:   []string{"api/limits", "internal/logs", "internal/utf8text", "job", "sign"},
	},
	{
		pkg: "console/trypage",
		reason: "the page that sends a test job; sees the inbox of the same process through an interface " +
			"that it declares",
		ours: []string{
			"client", "console/form", "console/web", "console/words", "internal/access", "internal/inbox", "job",
		},
	},
	{
		pkg:    "console/deadpages",
		reason: "pages about many jobs: dead letters and bulk work, as the API shows them",
		ours: []string{
			"client", "console/filter", "console/form", "console/web", "console/words", "internal/access",
		},
	},
	{
		pkg:    "internal/app",
		reason: "the composition root, the only package that knows all others",
		ours: []string{
			"api", "api/limits", "console", "console/deadpages", "console/jobpages", "console/nowpage",
			"console/recent", "console/schedulepages", "console/settingspages", "console/topicpages",
			"console/trypage", "console/web", "dispatcher", "dispatcher/metrics",
			"dispatcher/seal", "dispatcher/tracing", "dispatcher/transfer", "internal/audit", "internal/capacity",
			"internal/doctor", "internal/fileread", "internal/logs", "job", "notify", "notify/conn", "notify/guard",
			"policy", "pool", "store", "store/redis", "store/redis/connect", "store/sqlite",
		},
	},
	{
		pkg:    "console/consoletest",
		reason: "runs pages of the console in tests: the real API and dispatcher on the model of a store",
		ours: []string{
			"api", "client", "console", "console/web", "dispatcher", "internal/logs",
			"job", "policy", "store/storetest",
		},
		others: []string{"github.com/stretchr/testify"},
	},
	{
		pkg: "client/clienttest",
		reason: "a server in the tests of programs: composes the real API, dispatcher and sender on the " +
			"model of a store",
		ours: []string{"api", "client", "dispatcher", "notify", "store/storetest"},
	},
	{
		pkg:    "cli/output",
		reason: "prints JSON as tables, lines or through jq; knows no command and no server",
		others: []string{"github.com/itchyny/gojq"},
	},
	{
		pkg:    "cli/forward",
		reason: "leases jobs and sends them to a receiver nearby, through the client alone; prints nothing",
		ours:   []string{"cli/output", "client", "internal/fileread", "job", "notify", "sign"},
	},
	{
		pkg: "cli/manifest",
		reason: "files with topics, lanes and schedules, and how a server differs from them; of the rules of " +
			"the API knows that of marks, and is given the requests",
		ours:   []string{"cli/output", "client", "console/words", "internal/utf8text", "job"},
		others: []string{"go.yaml.in/yaml/v3"},
	},
	{
		pkg:    "cli",
		reason: "commands that see what any client of the API sees: no store, no app",
		ours: []string{
			"cli/forward", "cli/manifest", "cli/output", "client", "console/words", "internal/fileread",
			"internal/utf8text", "job/units", "policy", "sign",
		},
		others: []string{
			"github.com/BurntSushi/toml", "github.com/alecthomas/kong", "golang.org/x/term",
		},
	},
	{
		pkg:    "cmd/ringback",
		reason: "flags, signals, exit codes; everything else is app's",
		ours: []string{
			"cli", "cli/output", "client", "dispatcher/tracing/otlp", "internal/app", "internal/doctor",
			"internal/fileread", "internal/inbox", "internal/logs", "internal/typo", "internal/utf8text",
			"job/units",
		},
		others: []string{"github.com/alecthomas/kong", "go.yaml.in/yaml/v3"},
	},
	{
		pkg:    "internal/redistest",
		reason: "starts real Redis servers for tests; never shipped",
		ours:   []string{"internal/testkit"},
		others: []string{"github.com/redis/go-redis/v9", "github.com/stretchr/testify"},
	},
	{
		pkg:    "internal/badreceiver",
		reason: "misbehaving HTTP receivers for tests; never shipped",
	},
	{
		pkg:    "internal/sim",
		reason: "the whole service in fake time with faults from a seed: tests only, never shipped",
	},
	{
		pkg:    "internal/arch",
		reason: "this test",
	},
	{
		pkg:    "e2e",
		reason: "tests of the built binary over HTTP and signals; imports no package of this module",
	},
	{
		pkg:    "e2e/browser",
		reason: "tests in a real browser; imports no package of this module",
	},
	{
		pkg: "packaging",
		reason: "what runs the binary elsewhere, and tests that hold it against the binary; no package of " +
			"ours in it",
	},
}

// unshipped are modules and packages for tests only, which the binary must not contain.
var unshipped = []string{
	module + "/client/clienttest",
	module + "/console/consoletest",
	module + "/e2e",
	module + "/internal/arch",
	module + "/internal/badreceiver",
	module + "/internal/gobuild",
	module + "/internal/redistest",
	module + "/internal/sim",
	module + "/internal/testlevel",
	module + "/internal/testlog",
	module + "/packaging",
	module + "/store/storetest",
	"github.com/alicebob/miniredis",
	"github.com/chromedp",
	"github.com/go-sql-driver/mysql",
	"github.com/lib/pq",
	"github.com/stretchr/testify",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
	"testing",
}
