package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamespace_ReadsAndShowsItsQuota(t *testing.T) {
	h := handlerOf(newFake())
	for quota, shown := range map[string]string{
		`{"pending": 5, "bytes": "1536MiB", "rate": "5/s"}`: `{"pending": 5, "bytes": "1536MiB", "rate": "5/s"}`,
		`{"bytes": 1073741824}`:                             `{"pending": null, "bytes": "1GiB", "rate": null}`,
		`{"pending": null, "bytes": null, "rate": null}`:    `{"pending": null, "bytes": null, "rate": null}`,
		`{"bytes": "1GiB", "pending": ` +
			`9223372036854775807}`: `{"pending": 9223372036854775807, "bytes": "1GiB", "rate": null}`,
		`{"bytes": "1B"}`: `{"pending": null, "bytes": "1B", "rate": null}`,
	} {
		answer := call(t, h, http.MethodPut, "/v1/namespaces/a", `{"quota": `+quota+`}`)
		require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
		_, got, _ := strings.Cut(answer.Body.String(), `"quota":`)
		require.JSONEq(t, shown, strings.TrimSuffix(strings.TrimSpace(got), "}"))
	}
	for quota, detail := range map[string]string{
		`{"bytes": 0}`:      "must be 1 B or more",
		`{"bytes": -1}`:     "must be 1 B or more",
		`{"bytes": "0GiB"}`: "must be 1 B or more",
		`{"bytes": "1GB"}`:  "is not a size such as 256MiB, 1GiB or 512B",
	} {
		answer := call(t, h, http.MethodPut, "/v1/namespaces/a", `{"quota": `+quota+`}`)
		require.Equal(t, http.StatusUnprocessableEntity, answer.Code)
		p := problemIn(t, answer)
		require.Equal(t, []struct{ Field, Detail string }{{"/quota/bytes", detail}}, p.Errors, quota)
	}
}
