package notify

import (
	"fmt"
	"io"
)

// maxDials is how many connections over TLS are opened for one attempt. net/http dials again, for HTTP/2, for as long as the
// attempt has time, when it could not give the request to the last connection: the receiver closed it, admits no request on
// it, or other attempts were quicker and filled it.
const maxDials = 5

// mayDial counts a further connection, and refuses one beyond maxDials.
func (a *attempt) mayDial() error {
	if a.dials.Add(1) > maxDials {
		return fmt.Errorf("connect again: %w", io.EOF)
	}
	return nil
}
