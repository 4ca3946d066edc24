// Package pages answers with documents: the entry points, the descriptions of problems, and the contract.
package pages
