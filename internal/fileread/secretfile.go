// This part of the package reads files that hold a secret, such as a token, and checks who else can change or read
// them.

package fileread

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/ringback/ringback/internal/utf8text"
)

// ErrWritable is the error for a file that others than its owner can change.
var ErrWritable = errors.New("is writable by group or others")

// ReadSecret returns the text of a file without surrounding space and a byte order mark, and the file's mode: zero if
// it is not a regular file, or on Windows. An empty file is an error, and one in UTF-16.
func ReadSecret(name string) (text string, mode os.FileMode, err error) {
	file, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", 0, err
	}
	if info.Mode().IsRegular() && runtime.GOOS != "windows" {
		mode = info.Mode().Perm()
	}
	if mode&0o022 != 0 {
		return "", 0, fmt.Errorf("%s %w (mode %04o): chmod go-w it", name, ErrWritable, mode)
	}
	read, err := io.ReadAll(file)
	if err != nil {
		return "", 0, err
	}
	if read, err = utf8text.Trim(read); err != nil {
		return "", 0, fmt.Errorf("%s %w", name, err)
	}
	if text = strings.TrimSpace(string(read)); text == "" {
		return "", 0, fmt.Errorf("%s is empty", name)
	}
	return text, mode, nil
}

// IsPublic reports whether all users can read a file of that mode.
func IsPublic(mode os.FileMode) bool { return mode&0o004 != 0 }
