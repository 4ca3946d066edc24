package request

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
)

func TestPrincipalOf_WithoutOneIsNobody(t *testing.T) {
	require.Same(t, access.Nobody, PrincipalOf(t.Context()))
	root := access.NewRoot(access.Root, "default")
	require.Same(t, root, PrincipalOf(WithPrincipal(t.Context(), root)))
}
