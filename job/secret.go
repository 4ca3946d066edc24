package job

import (
	"slices"
	"strings"
)

// A header is secret if its name contains one of secretWords, or one of secretParts between hyphens: X-Auth is secret,
// Author is not. All are lower case. An idempotency key is not a secret.
var (
	secretWords = []string{
		"token", "secret", "password", "passwd", "passphrase", "api-key", "apikey", "credential",
		"signature", "authorization", "cookie", "session", "jwt",
	}
	secretParts = map[string]bool{"auth": true, "key": true}
)

// SecretHeader reports whether a header of this name carries a credential. Its value is never shown, is bound to an
// origin, and is removed where a receiver echoes it. Names are compared as foldName returns them.
func SecretHeader(name string) bool {
	name = foldName(name)
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(name, "idempotency-key"), "-") {
		if secretParts[part] {
			return true
		}
	}
	return false
}

// harmlessHeaders are names whose values are no secrets: those that HTTP and traces define, those of answers and those
// by which programs say what a request is about. harmlessPrefixes are prefixes of such names. All are as foldName
// returns them.
var (
	harmlessHeaders = setOf(
		"accept", "accept-charset", "accept-encoding", "accept-language", "accept-ranges", "age", "allow", "alt-svc",
		"cache-control", "connection", "content-disposition", "content-encoding", "content-language", "content-length",
		"content-md5", "content-range", "content-type", "date", "digest", "content-digest", "repr-digest", "dnt",
		"etag", "expect", "expires", "host", "if-match", "if-modified-since", "if-none-match", "if-range",
		"if-unmodified-since", "keep-alive", "last-modified", "max-forwards", "mime-version", "origin", "pragma",
		"prefer", "preference-applied", "priority", "range", "retry-after", "server", "server-timing", "soapaction",
		"strict-transport-security", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "vary", "via",
		"warning", "x-content-type-options", "x-frame-options", "x-powered-by", "x-requested-with", "x-robots-tag",

		"traceparent", "tracestate", "x-trace-id", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid",
		"x-b3-sampled", "x-amzn-trace-id", "x-cloud-trace-context", "cf-ray", "request-id", "x-request-id",
		"correlation-id", "x-correlation-id", "idempotency-key", "x-idempotency-key",

		"ce-id", "ce-source", "ce-specversion", "ce-type", "ce-subject", "ce-time",
		"ce-datacontenttype", "ce-dataschema", "api-version", "x-api-version", "x-client", "x-client-name",
		"x-client-version", "x-customer", "x-customer-id", "x-environment", "x-event", "x-event-id", "x-event-name",
		"x-event-type", "x-github-delivery", "x-github-event", "x-gitlab-event", "x-locale", "x-priority", "x-region",
		"x-schema-version", "x-shopify-topic", "x-source", "x-stage", "x-team", "x-tenant",
		"x-tenant-id", "x-topic", "x-version",
	)
	harmlessPrefixes = []string{"ratelimit", "x-ratelimit-", "ringback-", "webhook-"}
)

// HarmlessHeader reports whether the value of a header of this name is surely no secret. Values of other names are
// shown only to those who may read bodies, and are stored encrypted if there is a key. Names are compared as
// SecretHeader does.
func HarmlessHeader(name string) bool {
	if SecretHeader(name) {
		return false
	}
	name = foldName(name)
	return harmlessHeaders[name] || slices.ContainsFunc(harmlessPrefixes,
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
