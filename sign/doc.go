// Package sign signs and verifies HTTP requests by Standard Webhooks 1.0.0 (standardwebhooks.com). Ringback signs with
// it, and receivers in Go verify with it. Receivers in other languages can use any library of that specification. It
// depends on the standard library only.
//
// # Signed content
//
// The text id.timestamp.body: the header webhook-id, the header webhook-timestamp in Unix seconds, and the bytes of the
// body as they are sent. Each secret adds one signature to the header webhook-signature, separated by spaces:
//
//	whsec_  24 to 64 bytes in base64      v1   HMAC-SHA256; the verifier's secret can sign
//	whsk_   an ed25519 key in base64      v1a  ed25519; the public key (whpk_) verifies and cannot sign
//
// To rotate without downtime, add the new secret, which signs in addition to the old one, give it to the receiver, and
// remove the old one. A Verifier accepts a request if any signature matches any of its keys.
//
// # Receivers
//
//	verifier, err := sign.NewVerifier(os.Getenv("WEBHOOK_SECRET"))
//	…
//	http.Handle("POST /hooks", sign.Middleware(verifier, sign.MiddlewareOptions{})(handler))
//
// A signature authenticates a request but does not prevent replays. A job may arrive more than once: after a lost
// response, after a crash, or when an observer sends the request again within the tolerance. Its webhook-id is the same
// each time and unique to the job. So store the ids of processed requests for longer than the sender retries (Ringback:
// max_age, by default the span of the ladder and a day), ideally in the same transaction:
//
//	INSERT INTO seen (id) VALUES (webhook-id)   -- the primary key; on a conflict respond with 200 and do nothing
//	… process the request …
//	COMMIT
//
// # Limits
//
// The package stores no ids and fetches no keys. Only Secret.Text returns the text of a secret: every other way of
// printing one gives [redacted], and no error contains one.
//
// Secret, Signer and Verifier are safe for concurrent use.
package sign

// The headers of a signed request, as canonical names.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Prefixes of keys and signatures.
const (
	prefixSymmetric = "whsec_"
	prefixPrivate   = "whsk_"
	prefixPublic    = "whpk_"

	versionSymmetric  = "v1,"
	versionAsymmetric = "v1a,"
)

// MaxSignatures is the largest number of secrets of a Signer, of keys of a Verifier, and of signatures of a request
// that a Verifier checks.
const MaxSignatures = 16
