package inbox

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/sign"
)

func TestRecent_HasTheNewestRequestsFirst(t *testing.T) {
	in, _ := newInbox()
	require.Empty(t, in.Recent())
	for i := range maxRecent + 7 {
		post(in, "/status/503", "job-"+strconv.Itoa(i), "body "+strconv.Itoa(i))
		require.Equal(t, "job-"+strconv.Itoa(i), in.Recent()[0].ID)
	}
	all := in.Recent()
	require.Len(t, all, maxRecent)
	for i, r := range all {
		n := maxRecent + 7 - i
		require.Equal(t, int64(n), r.N)
		require.Equal(t, "body "+strconv.Itoa(n-1), r.Body)
	}
	require.Equal(t, "503", all[0].Answer)
	require.Equal(t, "/status/503", all[0].Path)
	require.Equal(t, "7", all[0].Attempt)
	require.Equal(t, Unsigned, all[0].Signature.Verdict)
}

func TestRecent_IsBounded(t *testing.T) {
	in, _ := newInbox()
	req := httptest.NewRequest(strings.Repeat("M", 300), "/"+strings.Repeat("p", 300),
		strings.NewReader(strings.Repeat("b", maxInboxBody+5)))
	for i := range 100 {
		req.Header.Set(fmt.Sprintf("H-%02d", i), strings.Repeat("v", 60_000))
	}
	in.ServeHTTP(httptest.NewRecorder(), req)
	r := in.Recent()[0]
	require.Len(t, r.Body, maxRecentBody)
	require.Equal(t, maxInboxBody+1, r.BodyBytes)
	require.Len(t, r.Headers, maxRecentHeaders)
	require.Equal(t, 80, r.MoreHeaders)
	require.Equal(t, "H-00", r.Headers[0].Name)
	for _, text := range []string{r.Method, r.Path, r.Headers[0].Value} {
		require.Len(t, text, maxRecentText+len("…"))
	}
}

func TestAddKey_VerifiesLikeTheKeysOfTheFile(t *testing.T) {
	in, out := newInbox()
	secret := sign.NewSecret()
	signer, err := sign.NewSigner(secret)
	require.NoError(t, err)
	send := func(body string) Signature {
		t.Helper()
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		now := time.Now()
		req.Header.Set("Webhook-Id", "a")
		req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
		req.Header.Set("Webhook-Signature", signer.Sign("a", now, []byte("body")))
		in.ServeHTTP(httptest.NewRecorder(), req)
		return in.Recent()[0].Signature
	}
	require.Equal(t, Signature{Verdict: Unchecked}, send("body"))
	require.NoError(t, in.AddKey(sign.NewSecret().Text()))
	require.Equal(t, Signature{Verdict: Wrong, Detail: "no signature matches"}, send("body"))
	require.NoError(t, in.AddKey(secret.Text()))
	require.Equal(t, Signature{Verdict: Verified, Key: secret.ID()}, send("body"))
	require.Equal(t, Wrong, send("other").Verdict)
	in.keys = "/nowhere/keys"
	require.Equal(t, Verified, send("body").Verdict)
	require.Equal(t, Unreadable, send("other").Verdict)
	require.NotContains(t, out.String(), secret.Text())
}

func TestAddKey_IsBoundedAndHidesWhatItRefuses(t *testing.T) {
	in, _ := newInbox()
	err := in.AddKey("whsec_hunter2")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
	text := sign.NewSecret().Text()
	for range maxAddedKeys + 1 {
		require.NoError(t, in.AddKey(text), "it is the same")
	}
	for range maxAddedKeys - 1 {
		require.NoError(t, in.AddKey(sign.NewSecret().Text()))
	}
	require.ErrorContains(t, in.AddKey(sign.NewSecret().Text()), "100 already")
}
