package conn

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// keepAliveMargin is the part of an announced idle time that is not used: a request takes time to arrive. Half of a
// short time is used nevertheless.
const keepAliveMargin = time.Second

// reuseTime returns for how long an idle connection may be reused: idleTimeout, or the shortest time that the receiver
// announced with its last response (Keep-Alive: timeout=5, in seconds; RFC 2068 §19.7.1.1), less keepAliveMargin.
// Parameters that are no numbers are ignored.
func reuseTime(h http.Header) time.Duration {
	least := idleTimeout
	for _, value := range h["Keep-Alive"] {
		for parameter := range strings.SplitSeq(value, ",") {
			name, text, _ := strings.Cut(parameter, "=")
			seconds, err := strconv.ParseUint(strings.Trim(text, ` "`), 10, 32)
			if err != nil || !strings.EqualFold(strings.TrimSpace(name), "timeout") {
				continue
			}
			announced := time.Duration(seconds) * time.Second
			least = min(least, announced-min(keepAliveMargin, announced/2))
		}
	}
	return least
}
