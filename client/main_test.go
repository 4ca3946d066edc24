package client_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain requires that nothing leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
