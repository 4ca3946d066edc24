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

func TestFormErrorsOf_NamesTheFieldsOfTheForm(t *testing.T) {
	errs, ok := web.FormErrorsOf(&client.Problem{Status: http.StatusUnprocessableEntity, Errors: []client.FieldError{
		{Field: "?cron", Detail: "is required"},
		{Field: "/job/headers/X-A", Detail: "is too long"},
		{Field: "/job/body_text", Detail: "is too long"},
		{Field: "/body_base64", Detail: "is not base64"},
		{Field: "/catch_up/runs", Detail: "is unknown"},
		{Field: "/more", Detail: "is unknown"},
	}}, "cron", "job.headers", "job.body", "body", "catch_up.runs")
	require.True(t, ok)
	require.Equal(t, []string{"more is unknown"}, errs.General)
	require.Equal(t, map[string]string{
		"cron": "is required", "job.headers": "X-A: is too long", "job.body": "is too long", "body": "is not base64",
		"catch_up.runs": "is unknown",
	}, errs.Fields)
}
