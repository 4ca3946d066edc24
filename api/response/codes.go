package response

import "net/http"

// A Code is the stable word for a kind of problem. It never changes its meaning, and clients may compare it.
type Code string

// The codes. problemTypes has the status and the meaning of each.
const (
	InvalidJSON          Code = "invalid_json"
	InvalidRequest       Code = "invalid_request"
	TokenMissing         Code = "token_missing"
	TokenMalformed       Code = "token_malformed"
	TokenUnknown         Code = "token_unknown"
	TokenExpired         Code = "token_expired"
	Forbidden            Code = "forbidden"
	NotFound             Code = "not_found"
	MethodNotAllowed     Code = "method_not_allowed"
	RequestTimeout       Code = "request_timeout"
	IDTaken              Code = "id_taken"
	WrongState           Code = "wrong_state"
	Expired              Code = "expired"
	InUse                Code = "in_use"
	LimitReached         Code = "limit_reached"
	Contended            Code = "contended"
	Unreadable           Code = "unreadable"
	RevisionMismatch     Code = "revision_mismatch"
	TooLarge             Code = "too_large"
	UnsupportedMediaType Code = "unsupported_media_type"
	Misdirected          Code = "misdirected"
	InvalidField         Code = "invalid_field"
	Quota                Code = "quota"
	TooManyWaiting       Code = "too_many_waiting"
	TooManyFailures      Code = "too_many_failures"
	Internal             Code = "internal"
	StoreUnavailable     Code = "store_unavailable"
	Timeout              Code = "timeout"
	Overloaded           Code = "overloaded"
	NotReady             Code = "not_ready"
	ShuttingDown         Code = "shutting_down"
)

// A ProblemType describes the problems of one code.
type ProblemType struct {
	Code   Code
	Status int
	Title  string
	// Meaning says when the problem occurs, and Remedy what the client should do.
	Meaning, Remedy string
}

// problemTypes are the problems of the API, in order of their status.
var problemTypes = []ProblemType{
	{
		InvalidJSON, http.StatusBadRequest, "Invalid JSON",
		"The body is empty, is not JSON in UTF-8, or has a duplicate key.",
		"Correct the JSON. The detail gives the line and the column. " +
			"A byte order mark is skipped; UTF-16 is refused.",
	},
	{
		InvalidRequest, http.StatusBadRequest, "Invalid request",
		"The body was truncated, or the request has a condition (If-Match, If-None-Match, If-Unmodified-Since) that " +
			"is malformed or that its path does not evaluate.",
		"Send the whole body, or remove the condition. The detail names it.",
	},
	{
		TokenMissing, http.StatusUnauthorized, "Token missing",
		"The server requires a token, and the request has none.",
		"Send the header Authorization: Bearer TOKEN.",
	},
	{
		TokenMalformed, http.StatusUnauthorized, "Token malformed",
		"The header Authorization does not contain a bearer token, or the token was truncated or mistyped.",
		"Send the header Authorization: Bearer TOKEN, with the token as it was shown.",
	},
	{
		TokenUnknown, http.StatusUnauthorized, "Token unknown",
		"The server has no such token: it is wrong, was revoked, or belongs to another server.",
		"Use another token.",
	},
	{
		TokenExpired, http.StatusUnauthorized, "Token expired",
		"The token was valid, and its expiry has passed.",
		"Use a new token.",
	},
	{
		Forbidden, http.StatusForbidden, "Forbidden",
		"The token does not allow the request; or the request comes from a job, from a web page of another origin, " +
			"or names a host that the server does not know as its own.",
		"The detail gives the reason. A repeated request gets the same answer.",
	},
	{
		NotFound, http.StatusNotFound, "Not found",
		"There is no such path, job, topic, lane or secret, or the retention of the job has ended.",
		"Check the path and the name. GET / lists the paths. " +
			"Of a path with repeated slashes the detail names the clean one.",
	},
	{
		MethodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed",
		"The path does not have this method.",
		"Use a method of the header Allow.",
	},
	{
		RequestTimeout, http.StatusRequestTimeout, "Request timeout",
		"The request, or the next line of a stream, did not arrive in time.",
		"Send it again, faster. Lines without a result are not registered.",
	},
	{
		IDTaken, http.StatusConflict, "Id taken",
		"The id belongs to a job that was registered with other fields. A repeated registration must be identical in " +
			"every field. While that job is kept, errors names the fields that differ.",
		"Use another id, or send the fields of the first request.",
	},
	{
		WrongState, http.StatusConflict, "Wrong state",
		"The state of the job does not allow the change, a registration has the id of a cancelled job, " +
			"a topic that is to be deleted has unfinished jobs, " +
			"or the topic whose jobs are to be leased is not pulled.",
		"The detail gives the state, and what allows the change.",
	},
	{
		Expired, http.StatusConflict, "Expired",
		"The job would expire before it is due.",
		"Set a later expiry: send expires_in.",
	},
	{
		InUse, http.StatusConflict, "In use",
		"The namespace cannot be removed, because it has jobs, also ended ones, schedules, topics with a policy, " +
			"lanes with settings, or tokens. Or it cannot move to another store.",
		"Remove what it has first; the detail names one. purge=true removes schedules, jobs, topics and lanes. For " +
			"another store, delete the namespace and create it there.",
	},
	{
		LimitReached, http.StatusConflict, "Limit reached",
		"There are as many tokens, namespaces, schedules or settings as there may be.",
		"Remove those that are not used. The detail gives the limit.",
	},
	{
		Contended, http.StatusConflict, "Contended",
		"Other changes of the same job, topic or lane came first, several times in a row.",
		"Repeat the request.",
	},
	{
		Unreadable, http.StatusConflict, "Unreadable",
		"The stored settings of the topic or lane cannot be read, so that they cannot be changed in part, and no job " +
			"without a url is registered: the topic may have one.",
		"Replace all of them with PUT.",
	},
	{
		RevisionMismatch, http.StatusPreconditionFailed, "Revision mismatch",
		"The revision in If-Match is not the current one: there was another change.",
		"Read the current state, and decide again.",
	},
	{
		TooLarge, http.StatusRequestEntityTooLarge, "Too large",
		"The request, a body in it, or the number of its jobs exceeds the limit.",
		"The detail gives the limit. Send less at a time.",
	},
	{
		UnsupportedMediaType, http.StatusUnsupportedMediaType, "Unsupported media type",
		"The content is not declared as JSON, or is compressed.",
		"Send JSON with the header Content-Type: application/json, uncompressed.",
	},
	{
		Misdirected, http.StatusMisdirectedRequest, "Misdirected request",
		"The process only delivers. Of /v1 it serves only /v1/version.",
		"Ask a process that serves the API.",
	},
	{
		InvalidField, http.StatusUnprocessableEntity, "Invalid field",
		"Fields or parameters of the request are invalid. errors lists all of them, with the rule of each.",
		"Correct the fields.",
	},
	{
		Quota, http.StatusTooManyRequests, "Quota exceeded",
		"A quota of the namespace is used up.",
		"Repeat the request after Retry-After, or raise the quota.",
	},
	{
		TooManyWaiting, http.StatusTooManyRequests, "Too many waiting requests",
		"This process serves as many requests that wait, for the end of a job or for jobs to lease, as it may, " +
			"or as it leaves to a namespace. Nothing was changed.",
		"Repeat the request after Retry-After, or without wait.",
	},
	{
		TooManyFailures, http.StatusTooManyRequests, "Too many failures",
		"Too many requests with a wrong token came from the address. 20 at once are answered 401. Later ones wait " +
			"for their answer, up to 5 s each. Correct tokens are not affected.",
		"Correct the token. Behind a proxy all clients have the address of the proxy.",
	},
	{
		Internal, http.StatusInternalServerError, "Internal error",
		"A fault of the server. Its log has the cause.",
		"Report it. The result of a change is unknown.",
	},
	{
		StoreUnavailable, http.StatusServiceUnavailable, "Store unavailable",
		"The store cannot be reached, or accepts no writes, or the process does not have the store of the namespace: " +
			"the detail says so. The result of a change is unknown.",
		"Repeat the request after Retry-After. With an id chosen by the client no job is registered twice.",
	},
	{
		Timeout, http.StatusServiceUnavailable, "Timeout",
		"The store did not answer in time. The result of a change is unknown.",
		"Repeat the request after Retry-After. With an id chosen by the client no job is registered twice.",
	},
	{
		Overloaded, http.StatusServiceUnavailable, "Overloaded",
		"A limit of this process is reached: requests, streams or lists in flight, or bytes of requests and " +
			"responses; or what it leaves of it to a namespace or a store. The request was not processed.",
		"Repeat the request after Retry-After, with fewer requests at a time.",
	},
	{
		NotReady, http.StatusServiceUnavailable, "Not ready",
		"The process does not accept or deliver jobs at present. The detail gives the reason.",
		"Ask again after Retry-After.",
	},
	{
		ShuttingDown, http.StatusServiceUnavailable, "Shutting down",
		"The process stops. Jobs without a result are not registered.",
		"Send them again, on another connection.",
	},
}

// ProblemTypes returns the problems of the API, in order of their status. The slice must not be changed.
func ProblemTypes() []ProblemType { return problemTypes }

// typeOf returns the description of a code.
func typeOf(code Code) *ProblemType {
	for i := range problemTypes {
		if problemTypes[i].Code == code {
			return &problemTypes[i]
		}
	}
	panic("response: no problem type has the code " + string(code))
}

// ProblemsPath is the path of the page that describes the problems, each under an anchor with its code.
const ProblemsPath = "/problems"
