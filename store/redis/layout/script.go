// This part of the package assembles Lua scripts and runs them.
//
// A script is a .lua file of the package that uses it. Before it come the numbers that Go and Lua share, prelude.lua,
// and the files of the folder include that it names. Each script begins with a table of its keys, arguments and result.
// Most include keys.lua, whose keys and arguments NewCall lays out.
//
// The files in include are the Lua side of package layout: records, runs, queues, throttles, health, retention.

package layout

import (
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A Script is a Lua script.
type Script struct {
	name string
	lua  *redis.Script
}

// Files that scripts include: those that read jobs, move them between the sets of their queue, and end them.
const (
	ReadingJobs = "record window keys"
	MovingJobs  = ReadingJobs + " limits run attempts throttle ordered queue close"
	EndingJobs  = MovingJobs + " retention"
)

//go:embed include
var included embed.FS

// constants are the numbers that scripts share with Go.
var constants = fmt.Sprintf("local NEVER, READY_MAX, RENOTIFY, REPLY_TTL, BREAKER_TTL, COUNTED_STARTS, FREE_LOSSES = "+
	"%d, %d, %d, %d, %d, %d, %d\n"+
	"local OWNER_SIZE, MS_UNITS, RENOTIFY_UNREAD, LEASE_MAX, HEALTH_KEPT, HEALTH_KNOWN, HEALTHY_AFTER = "+
	"%d, %d, %d, %d, %d, %d, %d\n"+
	"local HISTORY_MINUTES, HISTORY_HOURS, HISTORY_NUMBERS, LANE_HISTORIES, CALLBACK_TOPIC = %d, %d, %d, %d, %q\n"+
	"local FORM, TAG_CREATED, TAG_EXPIRY, TAG_MAX_AGE, TAG_ORDER, TAG_URL, TAG_FIRST_URL = %d, %d, %d, %d, %d, %d, "+
	"%d\n",
	Never, MaxReady, store.RenotifyAfter.Milliseconds(), int(store.TokenTTL.Seconds()),
	store.BreakerRetention.Milliseconds(), store.CountedStarts, policy.FreeLosses, store.LeaseOwnerLength,
	time.Millisecond/policy.DurationUnit, store.RenotifyUnreadAfter.Milliseconds(),
	(store.MaxLease + time.Hour).Milliseconds(), policy.HealthKept.Milliseconds(),
	policy.HealthUnknownAfter.Milliseconds(), policy.HealthyAfter.Milliseconds(),
	store.HistoryMinutes, store.HistoryHours, store.HistoryNumbers, store.MaxLaneHistories, job.CallbackTopic,
	RecordFormat, TagCreated, TagExpiry, TagMaxAge, TagOrder,
	TagURL, TagFirstURL)

// New returns the script <name>.lua of a package. It panics if a file does not exist.
func New(files embed.FS, name string, include ...string) *Script {
	var b strings.Builder
	b.WriteString(constants + read(included, "include/prelude"))
	for file := range strings.FieldsSeq(strings.Join(include, " ")) {
		b.WriteString(readIncluded(files, file))
	}
	b.WriteString(read(files, name))
	return &Script{name: name, lua: redis.NewScript(b.String())}
}

// Malformed returns the error for a reply that the script cannot have sent.
func (s *Script) Malformed() error { return fmt.Errorf("redis: script %s: malformed reply", s.name) }

func read(files embed.FS, name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("redis: read a script: %v", err))
	}
	return string(text)
}

// readIncluded reads a file of the folder include, or of the package that includes it.
func readIncluded(files embed.FS, name string) string {
	if text, err := included.ReadFile("include/" + name + ".lua"); err == nil {
		return string(text)
	}
	return read(files, name)
}
