package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRegister_AnswersWithoutSecretHeaders(t *testing.T) {
	h := handlerOf(newFake())
	w := call(t, h, http.MethodPost, "/v1/jobs", `{"id": "a", "url": "http://a.example/",
		"headers": {"x-auth": "hunter2", "X-ACCESS-KEY": "hunter2", "x-signature": ["hunter2", "hunter2"], "Author": `+
		`"jane"}}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.NotContains(t, w.Body.String(), "hunter2")
	require.Contains(t, w.Body.String(), "jane")
}
