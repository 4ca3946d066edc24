package api

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamespace_ReadsAndShowsItsQuota(t *testing.T) {
	h := handlerOf(newFake())
	for quota, shown := range map[string]string{
		`{"pending": 5, "bytes": "1536MiB", "kept_bytes": "4GiB", "rate": "5/s"}`: ``,
		`{"settings": 7, "settings_bytes": 100}`:                                  `"settings_bytes": "100B"`,
		`{"bytes": 1073741824}`:                                                   `"bytes": "1GiB"`,
		`{"pending": null, "bytes": null, "settings_bytes": null, "rate": null}`:  ``,
		`{"pending": 9223372036854775807}`:                                        ``,
		`{"bytes": "1B"}`:                                                         ``,
	} {
		answer := call(t, h, http.MethodPut, "/v1/namespaces/a", `{"quota": `+quota+`}`)
		require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
		var got struct{ Quota, Usage map[string]any }
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &got))
		wanted := map[string]any{
			"pending": nil, "bytes": nil, "kept_bytes": nil, "settings": nil, "settings_bytes": nil, "rate": nil,
		}
		require.NoError(t, json.Unmarshal([]byte(quota), &wanted))
		require.NoError(t, json.Unmarshal([]byte("{"+shown+"}"), &wanted))
		require.Equal(t, wanted, got.Quota)
		require.Nil(t, got.Usage, "it is not counted for a PUT")
	}
	answer := call(t, h, http.MethodGet, "/v1/namespaces/a", "")
	require.Contains(t, answer.Body.String(),
		`"usage":{"pending":5,"bytes":1200,"kept_bytes":40000,"settings":3,"settings_bytes":900}`)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/v1/namespaces/a", "", "If-None-Match",
		answer.Header().Get("ETag")).Code, "the usage has changed")
	for quota, detail := range map[string]string{
		`{"bytes": 0}`:      "must be 1 B or more",
		`{"bytes": -1}`:     "must be 1 B or more",
		`{"bytes": "0GiB"}`: "must be 1 B or more",
		`{"bytes": "1GB"}`:  "is not a size such as 256MiB, 1GiB or 512B",
	} {
		answer = call(t, h, http.MethodPut, "/v1/namespaces/a", `{"quota": `+quota+`}`)
		require.Equal(t, http.StatusUnprocessableEntity, answer.Code)
		p := problemIn(t, answer)
		require.Equal(t, []struct{ Field, Detail string }{{"/quota/bytes", detail}}, p.Errors, quota)
	}
}
