// Package deadpages has the pages about many jobs at once: the dead letters with what they have in common, and bulk
// work, from the count that precedes it to its end.
package deadpages
