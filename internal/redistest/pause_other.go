//go:build !unix

package redistest

import (
	"errors"
	"os"
)

// halt fails: this system cannot stop a process.
func halt(*os.Process) error { return errors.ErrUnsupported }

// wake fails as well.
func wake(*os.Process) error { return errors.ErrUnsupported }
