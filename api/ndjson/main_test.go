package ndjson

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no writer leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
