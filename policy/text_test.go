package policy_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestOneLine_BoundsTexts(t *testing.T) {
	require.Equal(t, "a b c", policy.OneLine("a\nb\x00c", 300))
	require.Equal(t, "a   b", policy.OneLine("a\x80\xff b", 300))
	long := policy.OneLine(strings.Repeat("é", 1000), 300)
	require.LessOrEqual(t, len(long), 300)
	require.True(t, utf8.ValidString(long))
	require.True(t, strings.HasSuffix(long, "é…"))
}
