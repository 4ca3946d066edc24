package redistest

import (
	"os"
	"path/filepath"
	"slices"
)

// TearAOF truncates the append-only file of a stopped server by some bytes, as a loss of power does. A shorter file is
// not changed.
func (s *Server) TearAOF(bytes int64) {
	s.tb.Helper()
	var files []string
	for _, pattern := range []string{"appendonlydir/*.incr.aof", "appendonly.aof"} { // since Redis 7, and before
		found, err := filepath.Glob(filepath.Join(s.dir, pattern))
		if err != nil {
			s.tb.Fatalf("look for the append-only file: %v", err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		s.tb.Fatalf("there is no append-only file in %s", s.dir)
	}
	file := slices.Max(files)
	info, err := os.Stat(file)
	if err != nil {
		s.tb.Fatalf("look at the append-only file: %v", err)
	}
	if info.Size() < bytes {
		return
	}
	if err := os.Truncate(file, info.Size()-bytes); err != nil {
		s.tb.Fatalf("tear the append-only file: %v", err)
	}
}
