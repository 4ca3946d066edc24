// Package pages answers with documents: the entry points, the descriptions of problems, and the contract. It also
// answers for paths that do not exist.
package pages
