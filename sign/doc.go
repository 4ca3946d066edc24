// Package sign signs and verifies HTTP requests by Standard Webhooks 1.0.0 (standardwebhooks.com). Ringback signs with
// it, and a receiver that is written in Go verifies with it; receivers in other languages take any other library of that
// specification. It needs the standard library alone.
//
// # What is signed
//
// The text id.timestamp.body: the header webhook-id, the header webhook-timestamp in Unix seconds, and the bytes of the
// body as they are sent. Each secret adds one signature to the header webhook-signature, divided by spaces:
//
//	whsec_  24 to 64 bytes in base64      v1   HMAC-SHA256; who can verify can sign
//	whsk_   an ed25519 key in base64      v1a  ed25519; the whpk_ text of its public half verifies and cannot sign
//
// A rotation needs no moment at which all change: add the new secret, which signs beside the old one, give it to the
// receiver, and remove the old one. A Verifier accepts a request when any signature fits any of its keys.
//
// # What a receiver does
//
//	verifier, err := sign.NewVerifier(os.Getenv("WEBHOOK_SECRET"))
//	…
//	http.Handle("POST /hooks", sign.Middleware(verifier, sign.MiddlewareOptions{})(handler))
//
// A signature says who sent a request and that nothing in it was changed, not that it has not come before. The same job
// may come more than once: because an answer was lost, because a process died, or because someone who saw the request
// sends it again within the tolerance. It has the same webhook-id each time, and no other job has that one. So keep the
// ids of what was done, for longer than the sender repeats (Ringback: its max_age, the span of the ladder and a day unless said), at best in the
// transaction that does it:
//
//	INSERT INTO seen (id) VALUES (webhook-id)   -- its primary key; is it there already, answer 200 and do nothing
//	… what the request asks for …
//	COMMIT
//
// # What it does not do
//
// It keeps no ids, asks nobody for keys, and changes no secret into text unless Secret.Text is called: every other way of
// printing one gives [redacted], and no error repeats one.
//
// Secret, Signer and Verifier are safe for concurrent use.
package sign

// The headers of a signed request, in the form in which http.Header keeps them.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// What texts begin with.
const (
	prefixSymmetric = "whsec_"
	prefixPrivate   = "whsk_"
	prefixPublic    = "whpk_"

	versionSymmetric  = "v1,"
	versionAsymmetric = "v1a,"
)

// MaxSignatures is how many secrets a Signer may have, how many keys a Verifier may have, and how many signatures of a
// request a Verifier looks at.
const MaxSignatures = 16
