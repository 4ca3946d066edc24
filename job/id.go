package job

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strconv"
	"strings"
	"time"
)

// Generated ids are 13 bytes in 21 characters that sort by time: 6 bytes of Unix milliseconds, 6 random bytes, and the
// shard of the job's queue, so that a lookup needs one shard.
const (
	idBytes  = 13
	idLength = 21
	// MaxShards is the largest number of shards: an id has one byte for it.
	MaxShards = 256
)

// idEncoding is base32 with RFC 4648's extended hex alphabet in lower case, which keeps the order of the bytes.
var idEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// NewID returns a new id for a job of the shard. It panics if shard is not in [0, MaxShards).
func NewID(now time.Time, shard int) string {
	if shard < 0 || shard >= MaxShards {
		panic("job: shard out of range for an id")
	}
	var raw [idBytes]byte
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
	copy(raw[:6], ms[2:])
	_, _ = rand.Read(raw[6:12]) // never fails: crypto/rand ends the process instead
	raw[12] = byte(shard)
	return idEncoding.EncodeToString(raw[:])
}

// ShardOf returns the shard in an id of the form of NewID. Clients may choose ids of that form, so it is only the shard
// to try first.
func ShardOf(id string) (shard int, ok bool) {
	if len(id) != idLength {
		return 0, false
	}
	var raw [idBytes]byte
	if n, err := idEncoding.Decode(raw[:], []byte(id)); err != nil || n != idBytes {
		return 0, false
	}
	return int(raw[12]), true
}

// CallbackID returns the id of a job's callback, one per generation, so that it is sent once. It includes CreatedAt,
// since a client may reuse an id after its id window.
func CallbackID(j Job) string {
	return reservedIDPrefix + j.ID + ":" + strconv.Itoa(j.Generation) + ":" + strconv.FormatInt(j.CreatedAt.UnixMilli(),
		36)
}

// The prefixes of the ids of internal jobs, and of the jobs of ticks.
const (
	WorkIDPrefix     = reservedIDPrefix + "work:"
	ScheduleIDPrefix = reservedIDPrefix + "schedule:"
	tickIDPrefix     = reservedIDPrefix + "s:"
	// EventIDPrefix is followed by the id of an event, which has no colon.
	EventIDPrefix = reservedIDPrefix + "event:"
	// EventJobIDPrefix is that of the jobs that an event makes for lanes.
	EventJobIDPrefix = reservedIDPrefix + "e:"
)

// IsInternalID reports whether an id is that of an internal job, whose body is Ringback's own. Such ids end with a
// generated one, or with that of an event; those of callbacks, which may have the same prefix, with two numbers.
func IsInternalID(id string) bool {
	if event, ok := strings.CutPrefix(id, EventIDPrefix); ok {
		return !strings.Contains(event, ":")
	}
	return (strings.HasPrefix(id, WorkIDPrefix) || strings.HasPrefix(id, ScheduleIDPrefix)) &&
		len(id)-strings.LastIndexByte(id, ':')-1 == idLength
}

// TickID returns the id of the job of a schedule's tick, so that a tick has one job.
func TickID(schedule string, at time.Time) string {
	return tickIDPrefix + schedule + ":" + strconv.FormatInt(at.Unix(), 10)
}

// EventOf returns the id of the event that a job is for, by its id and its queue; empty for other jobs.
func EventOf(id string, q Queue) string {
	rest, ok := strings.CutPrefix(id, EventJobIDPrefix)
	event, lane, _ := strings.Cut(rest, ":")
	if !ok || len(lane) < eventLaneHash || IsReserved(q.Topic) {
		return ""
	}
	return event
}

// eventLaneHash is the length of what stands for the lane in the id of an event's job.
const eventLaneHash = 26

// EventJobID returns the id of an event's job for a lane of a topic, so that the lane has one job of the event.
func EventJobID(event, topic, lane string) string {
	sum := sha256.Sum256([]byte(topic + " " + lane))
	return EventJobIDPrefix + event + ":" + idEncoding.EncodeToString(sum[:16])
}

// ReplayJobID returns the id of the job of a replay, which is bulk work, so that a lane has one job of it and the
// event.
func ReplayJobID(event, topic, lane, work string) string {
	return EventJobID(event, topic, lane) + ":" + work
}

// ScheduledAt returns the tick that a job is for, by its id and its queue; ok is false for other jobs.
func ScheduledAt(id string, q Queue) (at time.Time, ok bool) {
	if !strings.HasPrefix(id, tickIDPrefix) || IsReserved(q.Topic) {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(id[strings.LastIndexByte(id, ':')+1:], 10, 64)
	return time.Unix(seconds, 0).UTC(), err == nil
}
