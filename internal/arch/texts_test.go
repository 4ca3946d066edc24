package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// readsText matches calls that read files or PEM.
	readsText = regexp.MustCompile(
		`\b(os\.Open|os\.ReadFile|pem\.Decode|tls\.X509KeyPair|tls\.LoadX509KeyPair|AppendCertsFromPEM)\(`,
	)
	// knowsEncodings matches imports of the packages that skip byte order marks, and refuse UTF-16 with the reason.
	knowsEncodings = regexp.MustCompile(`"` + module + `/internal/(utf8text|fileread)"`)
)

// otherReaders are files of the source that read files or PEM and import none of these packages, each with the reason.
var otherReaders = map[string]string{
	"internal/app/transfer.go": "an export, which Ringback wrote and which has checksums",
	"cli/environment.go": "any bytes, such as a body; what must be a text is trimmed by those who ask " +
		"for it",
	"cli/jobfile.go":                    "joblines.go reads its lines",
	"cli/contextfile.go":                "TOML, whose decoder skips the mark and names UTF-16",
	"dispatcher/secrets/credentials.go": "PEM that api/request has read",
	"store/sqlite/db/log.go":            "a database",
	"store/sqlite/db/disk.go":           "a folder",
}

func TestTexts_AreReadByThoseWhoKnowEncodings(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range plan {
		if slices.ContainsFunc(unshipped, func(u string) bool { return within(module+"/"+r.pkg, u) }) {
			continue
		}
		files, err := filepath.Glob(filepath.Join("../..", r.pkg, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			call := readsText.Find(text)
			if call == nil || strings.HasSuffix(file, "_test.go") || within(r.pkg, "internal/fileread") ||
				knowsEncodings.Match(text) {
				continue
			}
			name := filepath.ToSlash(strings.TrimPrefix(file, "../../"))
			seen[name] = true
			require.NotEmpty(t, otherReaders[name],
				"%s calls %s…): read texts by internal/utf8text or internal/fileread", name, call)
		}
	}
	for name := range otherReaders {
		require.True(t, seen[name], "%s is not such a file: remove it", name)
	}
}
