package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

func TestChangesOrigin(t *testing.T) {
	for _, c := range []struct {
		stored, target string
		elsewhere      bool
	}{
		{"https://a.example/x", "https://a.example/x", false},
		{"https://a.example/x", "https://a.example/y?z=1", false},
		{"https://a.example/", "HTTPS://A.Example:443", false},
		{"http://a.example:80", "http://a.example", false},
		{"http://[::1]", "http://[::1]:80/x", false},
		{"https://a.example/", "", false},
		{"https://a.example/", "%", false},
		{"https://a.example/", "http://a.example/", true},
		{"https://a.example/", "https://a.example:444/", true},
		{"https://a.example/", "https://a.example.evil.example/", true},
		{"https://a.example/", "https://b.example/https://a.example/", true},
		{"http://[::1]", "http://[::2]", true},
		{"", "https://a.example/", true},
		{"%", "https://a.example/", true},
	} {
		require.Equal(t, c.elsewhere, job.ChangesOrigin(c.stored, c.target), "%s after %s", c.target, c.stored)
	}
}
