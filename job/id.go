package job

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strconv"
	"time"
)

// Server-made ids are 13 bytes in 21 characters that sort by time: 6 bytes of Unix milliseconds, 6 random ones, and the
// shard on which the job's queue lives, so that such an id is found without asking every shard.
const (
	idBytes  = 13
	idLength = 21
	// MaxShards is the number of shards that an id can name.
	MaxShards = 256
)

// idEncoding is base32 in digits and lower-case letters (RFC 4648's extended hex alphabet), whose order is that of the
// bytes.
var idEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// NewID makes an id for a job on the given shard. It panics when the shard is not in [0, MaxShards).
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

// ShardOf reads the shard out of an id that NewID may have made. A client may choose an id of the same form, so the
// answer says where to look first, not where the job is.
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

// CallbackID is the id of the job that tells of the end of a job's round: one for each, so that it is told once. A client
// may use an id again when it is not remembered any more, so the moment of registration belongs to it.
func CallbackID(j Job) string {
	return ownPrefix + j.ID + ":" + strconv.Itoa(j.Generation) + ":" + strconv.FormatInt(j.CreatedAt.UnixMilli(), 36)
}
