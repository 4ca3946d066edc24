package file

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// FreeSpace returns the bytes that this user can write to the file system of a folder. On a network file system that
// hangs it does not return.
func FreeSpace(folder string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0, fmt.Errorf("look at the file system of %s: %w", folder, err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil //nolint:unconvert // narrower on some processors
}

// Owner returns the process that has the lock of a database; zero: none, or not known, as of a process in another
// container.
func Owner(path string) (pid int) {
	info, err := os.Stat(path + lockSuffix)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	inode := ":" + strconv.FormatUint(stat.Ino, 10)
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// 1: FLOCK ADVISORY WRITE 1234 08:01:5678 0 EOF
		fields := strings.Fields(lines.Text())
		if len(fields) >= 6 && fields[1] == "FLOCK" && strings.HasSuffix(fields[5], inode) {
			pid, _ = strconv.Atoi(fields[4]) // 0 if it is no number
			return max(pid, 0)
		}
	}
	return 0
}
