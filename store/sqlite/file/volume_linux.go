package file

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// kinds are the names of file systems by their number (statfs(2)) that are not for databases, or lose them.
var kinds = map[int64]string{
	0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x517b: "smb", 0x01021997: "9p",
	0x65735546: "fuse", 0x00c36400: "ceph",
	0x794c7630: "overlay", 0x01021994: "tmpfs", 0x858458f6: "ramfs", 0x5346414f: "afs", 0x61756673: "aufs",
	0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x2fc12fc1: "zfs", 0xf2f52010: "f2fs",
}

// A Volume is the file system of a folder.
type Volume struct {
	Kind string // such as ext4; of an unknown one its number
	Free int64  // bytes that this user can write
}

// ReadVolume returns the file system of a folder. On a network file system that hangs it does not return.
func ReadVolume(folder string) (Volume, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return Volume{}, fmt.Errorf("look at the file system of %s: %w", folder, err)
	}
	number := int64(uint32(stat.Type))
	kind, known := kinds[number]
	if !known {
		kind = fmt.Sprintf("type %#x", number)
	}
	//nolint:unconvert // narrower on some processors
	return Volume{Kind: kind, Free: int64(stat.Bavail) * int64(stat.Bsize)}, nil
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
