// Package seal encrypts small secrets where they are stored, under keys that the store does not have: who gets hold of a
// database, or of a copy of it, cannot sign with what is in it, nor show the headers that open a receiver's door.
//
// # What is stored
//
//	plain:<text>                                  by a Box without keys
//	x1:<key id>:<base64 of nonce and ciphertext>  XChaCha20-Poly1305, a random nonce of 24 bytes, base64 without padding
//
// A key's id is 8 hexadecimal digits of a hash of the key. It tells which of several keys opens a text, and nothing of
// the key. The place at which a text is stored is authenticated with it: the same text copied to another place does not
// open there.
//
// # Keys and their rotation
//
// The setting RINGBACK_SECRET_KEY holds one or several keys. The first seals, all of them open. To change the key, put
// the new one in front, seal again what is not Current, and take the old one away. The same way leads from no key to
// one: a Box with keys opens plain texts too.
//
// # What it does not do
//
// It hides; it does not keep a writer out. Who can write to the store can put a plain text of their own in the place of
// a sealed one. It does not hide how long a secret is. A key cannot be guessed from what is stored, provided that it is
// random: there is no derivation from a password.
//
// A Box is safe for concurrent use.
package seal
