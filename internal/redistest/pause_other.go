//go:build !unix

package redistest

import (
	"errors"
	"os"
)

// halt fails where the system cannot stop a process.
func halt(*os.Process) error { return errors.ErrUnsupported }

// wake does what halt does.
func wake(*os.Process) error { return errors.ErrUnsupported }
