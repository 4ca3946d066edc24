// Package content reads what requests have in common: JSON bodies of bounded size, content types, and the conditions
// that the headers If-Match and If-None-Match set. It knows no fields.
package content
