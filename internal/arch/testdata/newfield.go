package arch

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/sqlite"
)

// TestNote_PassesThroughAPIAndStore is compiled by TestNewField_TouchesFiveFiles only, with the field that it adds.
func TestNote_PassesThroughAPIAndStore(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	onSQLite, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "test.db"), Limits: policy.Builtin().Limits(), Logger: quiet})
	require.NoError(t, err)
	onRedis, err := redis.Open(t.Context(), redis.Options{URL: "redis://" + miniredis.RunT(t).Addr(), Logger: quiet})
	require.NoError(t, err)
	for _, s := range []store.Store{onSQLite, onRedis} {
		d, err := dispatcher.New(dispatcher.Options{Store: s, RegisterOnly: true, Logger: quiet})
		require.NoError(t, err)
		handler := api.New(api.Options{Service: d, Logger: quiet})
		call := func(status int, method, path, body, wanted string) {
			t.Helper()
			r := httptest.NewRequest(method, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			require.Equal(t, status, w.Code, w.Body.String())
			require.Contains(t, w.Body.String(), wanted)
		}
		const registration = `{"id": "a", "url": "https://shop.example/", "delay": "1h", "note": "first"}`
		call(http.StatusCreated, http.MethodPost, "/v1/jobs", registration, `"note":"first"`)
		call(http.StatusOK, http.MethodPost, "/v1/jobs", registration, `"note":"first"`)
		call(http.StatusConflict, http.MethodPost, "/v1/jobs", strings.Replace(registration, "first", "other", 1), `"/note"`)
		call(http.StatusUnprocessableEntity, http.MethodPost, "/v1/jobs", `{"note": "more than ten"}`, `"/note"`)
		call(http.StatusOK, http.MethodGet, "/v1/jobs?topic=default&state=scheduled", "", `"note":"first"`)
		call(http.StatusOK, http.MethodPatch, "/v1/jobs/a", `{"retries": 3}`, `"note":"first"`)
		call(http.StatusOK, http.MethodPatch, "/v1/jobs/a", `{"note": "second"}`, `"note":"second"`)
		call(http.StatusOK, http.MethodGet, "/v1/jobs/a", "", `"note":"second"`)
		call(http.StatusOK, http.MethodPatch, "/v1/jobs/a", `{"note": null}`, `"note":null`)
		call(http.StatusOK, http.MethodGet, "/v1/jobs/a", "", `"note":null`)
		require.NoError(t, s.Close())
	}
}
