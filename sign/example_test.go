package sign_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/sign"
)

// A rotation: the sender signs with both secrets, and receivers with either one accept the request.
func ExampleSigner() {
	former, next := sign.NewSecret(), sign.NewSecret()
	signer, err := sign.NewSigner(former, next)
	if err != nil {
		fmt.Println(err)
		return
	}
	now, body := time.Now(), []byte(`{"order":4711}`)
	header := http.Header{}
	header.Set("webhook-id", "close-4711")
	header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	header.Set("webhook-signature", signer.Sign("close-4711", now, body))

	for _, secret := range []sign.Secret{former, next, sign.NewSecret()} {
		verifier, err := sign.NewVerifier(secret.Text())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(verifier.Verify(header, body, now) == nil)
	}
	// Output:
	// true
	// true
	// false
}

// A receiver that verifies requests, and handles each job once although it may arrive twice.
func ExampleMiddleware() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	verifier, err := sign.NewVerifier(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := make(map[string]bool) // a table of the receiver's database
	orders := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("webhook-id")
		if seen[id] {
			fmt.Println(id, "was done before")
			return // 200: do not send it again
		}
		seen[id] = true
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("%s\n", body)
	})
	receiver := sign.Middleware(verifier, sign.MiddlewareOptions{})(orders)

	// The sender's side.
	key, err := sign.ParseSecret(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	signer, err := sign.NewSigner(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	send := func(id, body, tampered string) {
		at := time.Now()
		r := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(tampered))
		r.Header.Set("webhook-id", id)
		r.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
		r.Header.Set("webhook-signature", signer.Sign(id, at, []byte(body)))
		w := httptest.NewRecorder()
		receiver.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	send("close-4711", `{"order":4711}`, `{"order":4711}`)
	send("close-4711", `{"order":4711}`, `{"order":4711}`)
	send("close-4712", `{"order":4712}`, `{"order":9999}`)
	// Output:
	// {"order":4711}
	// 200
	// close-4711 was done before
	// 200
	// 401
}
