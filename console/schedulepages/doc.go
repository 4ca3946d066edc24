// Package schedulepages has the pages of the console about schedules: the list, a schedule with its ticks, its form
// with a preview, and its backfill.
package schedulepages
