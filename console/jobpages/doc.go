// Package jobpages has the console's pages about jobs: the list with its filters and its box for an id, a job with its
// timeline, and the forms that run, edit, cancel, revive and copy it.
package jobpages
