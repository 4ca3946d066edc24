package schedule

import (
	"fmt"
	"regexp"
	"sync"
	"time"
	_ "time/tzdata" // for systems without a time zone database, such as our container image
)

// maxShift is longer than any change of a zone's clocks, and than any difference to UTC.
const maxShift = 48 * time.Hour

// zoneName matches names of the IANA database. It excludes local files: posixrules, right/…
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+/-]{0,63}$`)

// zones are the time zones in use by name. Each is some KiB and shared by its schedules.
var zones struct {
	sync.Mutex
	byName map[string]*time.Location
}

// maxZones is more than the IANA database has. Zones beyond are not shared: file systems that ignore case know a zone
// by many names.
const maxZones = 1000

// loadZone returns the time zone with an IANA name, UTC for an empty one.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	zones.Lock()
	defer zones.Unlock()
	if zone, ok := zones.byName[name]; ok {
		return zone, nil
	}
	if !zoneName.MatchString(name) || name == "Local" {
		return nil, fmt.Errorf("%.40q is not a time zone; use an IANA name such as Europe/Berlin, in its exact case",
			name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a known time zone; use an IANA name such as Europe/Berlin", name)
	}
	if zones.byName == nil {
		zones.byName = make(map[string]*time.Location)
	}
	if len(zones.byName) < maxZones {
		zones.byName[name] = zone
	}
	return zone, nil
}

// Local times are passed as instants in UTC that show the same time.

// showLocal returns the local time at an instant.
func showLocal(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return shift(at.UTC(), offset)
}

// shift adds seconds.
func shift(at time.Time, seconds int) time.Time { return at.Add(time.Duration(seconds) * time.Second) }

// nextOffset returns an instant until which the zone's offset stays as it is at another, and after which it may change.
// The zero time: it never changes. It is always later than at, unlike the end that ZoneBounds returns: where a zone's
// transitions are computed by a rule, from 2038 on, the standard library ends leap years a day early.
func nextOffset(at time.Time, zone *time.Location) time.Time {
	_, end := at.In(zone).ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		return at.Add(24 * time.Hour) // no zone changes its clocks at the turn of a year
	}
	return end
}

// latestLocal returns the latest local time that the zone's clocks have shown until an instant. It is later than that
// of the instant if the clocks have gone back since.
func latestLocal(at time.Time, zone *time.Location) time.Time {
	high := showLocal(at, zone)
	for before := at; ; {
		start, _ := before.In(zone).ZoneBounds()
		if start.IsZero() || at.Sub(start) > maxShift {
			return high
		}
		before = start.Add(-1)
		if local := showLocal(before, zone); local.After(high) {
			high = local
		}
	}
}

// resolveLocal returns the first instant at which the zone's clocks show a local time or a later one: that is the first
// of two, and the end of the gap if the time does not exist.
func resolveLocal(local time.Time, zone *time.Location) time.Time {
	for at := local.Add(-maxShift).In(zone); ; {
		_, offset := at.Zone()
		end := nextOffset(at, zone)
		found := shift(local, -offset)
		if found.Before(at) {
			found = at.UTC() // at is the end of a gap
		}
		if end.IsZero() || found.Before(end) {
			return found
		}
		at = end.In(zone)
	}
}
