package web_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

func TestFormErrorsOf_HasWhatIsCertainlyNotDone(t *testing.T) {
	for code, want := range map[string]struct {
		status int
		ok     bool
	}{
		"invalid_field":     {http.StatusUnprocessableEntity, true},
		"too_many_waiting":  {http.StatusTooManyRequests, true},
		"overloaded":        {http.StatusServiceUnavailable, true},
		"store_unavailable": {http.StatusServiceUnavailable, false},
		"timeout":           {http.StatusServiceUnavailable, false},
		"internal":          {http.StatusInternalServerError, false},
		"token_unknown":     {http.StatusUnauthorized, false},
		"not_found":         {http.StatusNotFound, false},
	} {
		errs, ok := web.FormErrorsOf(&client.Problem{Status: want.status, Code: code, Detail: "because"})
		require.Equal(t, want.ok, ok, code)
		if ok {
			require.Equal(t, []string{"because"}, errs.General, code)
			require.Equal(t, want.status, errs.Status, code)
		}
	}
}
