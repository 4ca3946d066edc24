package request

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

func TestDecodeJob_KeepsNoHeadersBeyondTheBound(t *testing.T) {
	names := make([]string, 5000)
	for i := range names {
		names[i] = fmt.Sprintf(`"X%d": ""`, i)
	}
	text := []byte(`{"url": "http://a.example/", "headers": {` + strings.Join(names, ", ") + `}}`)
	var p *response.Problem
	allocs := testing.AllocsPerRun(1, func() { _, p = DecodeJob(text, nil, time.Now(), 1<<20) })
	require.Equal(t, []job.FieldError{{Field: "/headers", Detail: "must be at most 100 values together"}}, p.Fields)
	require.Less(t, allocs, float64(len(names)/2), "headers that are refused are kept")
}
