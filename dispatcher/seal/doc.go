// Package seal encrypts small secrets at rest, with keys that are not in the store: a copy of the database reveals
// neither signing secrets nor secret headers.
//
// # Stored format
//
//	plain:<text>                                  by a Box without keys
//	x1:<key id>:<base64 of nonce and ciphertext>  XChaCha20-Poly1305, a random nonce of 24 bytes, no padding
//
// A key's id is 8 hexadecimal digits of a hash of the key. It identifies the key of a text and reveals nothing about
// it. The place of a text is authenticated: a text copied to another place cannot be opened there.
//
// # Keys and rotation
//
// The setting RINGBACK_SECRET_KEY holds one or several keys. The first encrypts, all decrypt. To rotate, prepend the
// new key, seal again every text that is not Current, and remove the old key. The same steps introduce a first key: a
// Box with keys opens plain texts.
//
// # Limits
//
// It provides confidentiality, not protection against writers: a writer to the store can replace a sealed text by a
// plain one. It does not hide the length of a secret. Keys must be random: there is no derivation from a password.
//
// A Box is safe for concurrent use.
package seal
