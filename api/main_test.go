package api

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain sees to it that no stream leaves a goroutine behind, whatever its client did.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
