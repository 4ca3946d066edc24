package client

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// idEncoding keeps the order of the bytes.
var idEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// NewID returns a new id of a job, 26 lower-case letters and digits. Ids of different milliseconds are in the order of
// time.
func NewID() string {
	var raw [16]byte
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(time.Now().UnixMilli()))
	copy(raw[:6], ms[2:])
	_, _ = rand.Read(raw[6:]) // never fails: crypto/rand ends the process instead
	return idEncoding.EncodeToString(raw[:])
}
