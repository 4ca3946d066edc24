package table

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// Databases with other tables need another version.
func TestSchema_HasTheTablesOfItsVersion(t *testing.T) {
	sum := sha256.Sum256([]byte(Tables))
	require.Equal(t, []any{int64(9), "8673df29b6ad0a0c"}, []any{Schema.Version, hex.EncodeToString(sum[:8])},
		"raise the version, and write both here")
}
