package e2e

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// Both engines store the largest body, and include it in callbacks that have room for it.
func TestBodies_OfTheLargestSizeAreStoredAndSent(t *testing.T) {
	t.Parallel()
	for _, e := range testkit.Of(engines[:1], engines[:2]) { // tests of the engines have bodies as large
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			const largest = 10 << 20
			p := start(t, e.store(t), "--max-body=10MiB")
			to := newReceiver(t)
			onDelivered := obj{"url": to.URL + "/ok", "include": []string{"body"}}

			exact := obj{
				"id": "exact", "url": to.URL + "/ok",
				"body_base64": base64.StdEncoding.EncodeToString(make([]byte, largest)), "on_delivered": onDelivered,
			}
			register(t, p, exact)
			exact["id"], exact["body_base64"] = "beyond", base64.StdEncoding.EncodeToString(make([]byte, largest+1))
			call[obj](t, p, http.MethodPost, "/v1/jobs", exact, http.StatusRequestEntityTooLarge)

			// In JSON each of these takes six bytes: more than a callback may be.
			register(t, p, obj{
				"id": "omits", "url": to.URL + "/ok", "body_text": strings.Repeat("\x01", 2_797_000),
				"on_delivered": onDelivered,
			})

			require.Len(t, to.arrives(t, "exact", 1)[0].body, largest)
			callbackOf := func(id string) (job struct {
				BodyText    *string `json:"body_text"`
				BodyBase64  []byte  `json:"body_base64"`
				BodyOmitted bool    `json:"body_omitted"`
			},
			) {
				t.Helper()
				to.arrives(t, "rb:"+id+":0", 1)
				var callback struct{ Job json.RawMessage }
				require.NoError(t, json.Unmarshal([]byte(to.of("rb:" + id + ":0")[0].body), &callback))
				require.NoError(t, json.Unmarshal(callback.Job, &job))
				return job
			}
			require.Len(t, callbackOf("exact").BodyBase64, largest)
			omits := callbackOf("omits")
			require.True(t, omits.BodyOmitted)
			require.Nil(t, omits.BodyText)
		})
	}
}
