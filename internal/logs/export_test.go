package logs

const MaxPending = maxPending
