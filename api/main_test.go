package api

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain requires that no stream leaks a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
