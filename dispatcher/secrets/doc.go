// Package secrets seals the secrets of topics, lanes and jobs before they are stored, and opens them for attempts:
// signing secrets, keys of client certificates, and headers that carry secrets. A sealed value is bound to its owner
// and use, and a header also to the origin to which it may be sent. Without a key, values are stored in plain text.
//
// A Sealer is safe for concurrent use.
package secrets
