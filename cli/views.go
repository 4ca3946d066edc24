package cli

import "github.com/ringback/ringback/cli/output"

// views are the columns of lists. A column with + is shown in the format wide.
var views = map[string]output.View{
	"jobs": output.Columns("ID id", "STATE state", "TOPIC topic", "LANE lane", "ATTEMPTS attempts_made", "STATUS last_status",
		"NEXT next_attempt_at", "REGISTERED created_at", "+ENDED ended_at", "+REASON reason", "+METHOD method", "+URL url",
		"+LABELS labels", "+REVISION revision"),
	"dead": output.Columns("ID id", "TOPIC topic", "LANE lane", "REASON reason", "STATUS last_status", "ATTEMPTS attempts_made",
		"DIED ended_at", "+REGISTERED created_at", "+METHOD method", "+URL url", "+LABELS labels"),
	"groups": output.Columns("COUNT count", "TOPIC topic", "LANE lane", "REASON reason", "STATUS status", "NEWEST sample.ended_at",
		"EXAMPLE sample.id"),
	"work": output.Columns("ID id", "ACTION action", "STATE state", "DONE done", "OF total", "FAILED failed", "SKIPPED skipped",
		"BEGAN created_at", "BY created_by", "+ENDED ended_at", "+RATE rate", "+WHERE where", "+CHANGE change"),
	"topics": output.Columns("TOPIC topic", "DELIVER deliver", "RETRIES retries", "TIMEOUT timeout", "RATE rate", "PAUSED paused",
		"+LADDER ladder", "+WORKERS workers", "+LANE_RATE lane_rate", "+LANE_CONCURRENCY lane_concurrency", "+URL url", "+REVISION revision", "+UPDATED updated_at",
		"+BY updated_by"),
	"lanes": output.Columns("LANE lane", "RATE lane_rate", "CONCURRENCY lane_concurrency", "ORDERED ordered", "PAUSED paused",
		"URL url", "+HEADERS headers", "+REVISION revision", "+UPDATED updated_at", "+BY updated_by"),
	"held": output.Columns("TOPIC topic", "LANE lane", "REASON reasons.0.code", "UNTIL reasons.0.until", "READY ready", "SCHEDULED scheduled",
		"RUNNING running", "OLDEST_DUE oldest_due_at", "STATUS last_failure.status", "ERROR last_failure.error_class",
		"+FAILED_AT last_failure.at", "+JOB last_failure.job_id", "+BY reasons.0.by", "+NOTE reasons.0.note", "+DETAIL reasons.0.detail"),
	"secrets": output.Columns("ID id", "CREATED created_at", "BY created_by"),
	"keys":    output.Columns("ID id", "CREATED created_at", "PUBLIC_KEY public_key"),
	"schedules": output.Columns("SCHEDULE name", "STATE state", "CRON cron", "TIMEZONE timezone", "EVERY every", "NEXT next.0.at", "RUN counts.run",
		"MISSED counts.missed", "FAILED counts.failed", "+TOPIC job.topic", "+URL job.url", "+NOTE note",
		"+UPDATED updated_at", "+BY updated_by"),
	"tokens": output.Columns("ID id", "NAME name", "ROLE role", "NAMESPACE namespace", "TOPICS topics", "LAST_USED last_used_at",
		"EXPIRES expires_at", "+BODIES bodies", "+CREATED created_at", "+BY created_by"),
	"namespaces": output.Columns("NAMESPACE namespace", "STORE store", "PENDING quota.pending", "BYTES quota.bytes", "RATE quota.rate",
		"+REVISION revision"),
	"ticks": output.Columns("AT =at", "LOCAL =local", "NOTE note"),
	"stats": output.Columns("TOPIC topic", "SCHEDULED scheduled", "READY ready", "RUNNING running", "DELIVERED delivered", "DEAD dead",
		"CANCELLED cancelled", "OLDEST_DUE oldest_due_at", "BREAKERS breakers_open", "+REGISTERED registered", "+BYTES unfinished_bytes"),
	"lanestats": output.Columns("LANE lane", "SCHEDULED scheduled", "READY ready", "RUNNING running", "BREAKER breaker",
		"COOLDOWN cooldown_until"),
	"contexts": output.Columns("CONTEXT name", "CURRENT current", "SERVER server", "NAMESPACE namespace", "TOKEN_FILE token_file"),
	"attempts": output.Columns("N n", "STARTED started_at", "VERDICT verdict", "STATUS status", "MS duration_ms", "ERROR error_class",
		"+KIND kind", "+PROCESS process", "+ADDRESS remote_addr", "+DETAIL error"),
	"planned": output.Columns("ATTEMPT attempt", "WAIT wait", "EARLIEST earliest", "LATEST latest", "NOTE note", "+EARLIEST_AT earliest_at", "+LATEST_AT latest_at"),
}

// nested are the views of lists inside of one thing.
var nested = map[string]output.View{
	"attempts": views["attempts"],
	"events":   output.Columns("AT at", "KIND kind", "FIELDS fields", "ACTOR actor"),
	"failures": output.Columns("ID id", "REASON reason"),
	"next":     output.Columns("AT =at", "LOCAL =local", "NOTE note"),
	"last":     output.Columns("AT at", "OUTCOME outcome", "REASON reason", "JOB job_id", "STATE job_state"),
	"groups":   output.Columns("COUNT count", "TOPIC topic", "REASON reason"),
	"items":    views["lanestats"],
}
