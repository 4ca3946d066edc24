package capacity

import "time"

const (
	// MaxAttempts is the number of attempts in flight of a process.
	MaxAttempts = 2048
	// MaxAttemptBytes bounds the bodies of attempts that are not sent yet.
	MaxAttemptBytes = 64 << 20
	// AttemptsWeight is the weight of a topic among attempts, and AttemptBytesWeight that among their bytes.
	AttemptsWeight, AttemptBytesWeight = 128, 1

	// SmallBody is the size up to which the body of a request counts as small.
	SmallBody = 64 << 10
	// ListItems is the number of items of a list that is one part of Lists. An item takes up to 40 KiB, most of it
	// headers, and about three times that until it is encoded.
	ListItems = 250
	// ListWait bounds the wait for Lists.
	ListWait = 10 * time.Second
)

// The bounds that clients share.
var (
	Requests = &Limit{
		Name: "requests in flight", Whole: 4096, Weight: namespaceWeight,
		Depends: "a quarter of the file descriptors, or three quarters in a process that does not deliver; at least 16",
		Beyond:  "503", Advice: "retry with fewer requests at a time",
	}
	Waits = &Limit{
		Name: "requests that wait", Whole: 1778, Weight: namespaceWeight, Depends: "half of the requests in flight",
		Beyond: "429", Advice: "retry, or leave out wait",
	}
	LeaseWaits = &Limit{
		Name: "requests that wait for jobs to lease", Whole: Waits.Whole * 3 / 4,
		Weight: namespaceWeight, Depends: "three quarters of the requests that wait, which count, too",
		Beyond: "429; one that reports leases is answered without a wait", Advice: "retry, or leave out wait",
	}
	Streams = &Limit{
		Name: "NDJSON batches", Whole: 64, Weight: namespaceWeight,
		Beyond: "503", Advice: "retry later, or send the jobs as JSON",
	}
	Bodies = &Limit{
		Name: "bytes of requests and unread answers", Whole: 64 << 20, Bytes: true,
		Weight: namespaceWeight, Depends: "for requests of at most 64 KiB: 16 MiB more than for others",
		Beyond: "503", Advice: "retry with fewer or smaller requests",
	}
	LargeBodies = &Limit{
		Name: "bytes of requests and unread answers", Whole: 48 << 20, Bytes: true,
		Weight:  namespaceWeight,
		Depends: "for larger requests, which count above, too; 1.5 times the largest one, if that is more",
		Beyond:  "503", Advice: "retry with fewer or smaller requests",
	}
	Lists = &Limit{
		Name: "lists that are read", Whole: 4, PerStore: true, Weight: namespaceWeight,
		Depends: "of up to 250 items; longer ones count twice",
		Beyond:  "waits up to 10 s, then 503", Advice: "retry, or use a smaller limit",
	}
	LiveListeners = &Limit{
		Name: "clients that watch live", Whole: 16, PerStore: true, Weight: namespaceWeight,
		Beyond: "503", Advice: "retry later",
	}
	InternalSteps = &Limit{
		Name: "steps of bulk work and schedules", Whole: 4, PerStore: true, Weight: namespaceWeight,
		Beyond: "waits",
	}
	WatchedPages = &Limit{
		Name: "live pages of the console", Whole: 128, Weight: namespaceWeight, Depends: "32 of a token",
		Beyond: "503, and the page is not live", Advice: "close some, or reload the page instead",
	}
	RenderedPages = &Limit{
		Name: "live pages of the console that are rendered anew", Whole: 4, Weight: namespaceWeight, Beyond: "waits",
	}
	LargeForms = &Limit{
		Name: "forms of the console above 256 KiB", Whole: 4, Weight: namespaceWeight,
		Beyond: "503", Advice: "send the form again",
	}
	Attempts = &Limit{
		Name: "attempts in flight", Whole: MaxAttempts, Weight: AttemptsWeight, ByTopic: true,
		Depends: "divided by the stores", Beyond: "waits",
	}
	AttemptBytes = &Limit{
		Name: "bytes of bodies that are not sent yet", Whole: MaxAttemptBytes, Bytes: true, Weight: AttemptBytesWeight,
		ByTopic: true, Depends: "divided by the stores", Beyond: "waits",
	}
	Probes = &Limit{
		Name: "requests for each of /healthz, /readyz and /metrics", Whole: 8, Beyond: "503",
		Advice: "retry",
	}
)

// Table has all bounds.
var Table = []*Limit{
	Requests, Waits, LeaseWaits, Streams, Bodies, LargeBodies, Lists, LiveListeners, InternalSteps, WatchedPages,
	RenderedPages, LargeForms, Attempts, AttemptBytes, Probes,
}
