package logbuffer

const MaxPending = maxPending
