package sign

import (
	"net/http"
	"strconv"
	"time"
)

// vector is a known answer.
type vector struct {
	name      string
	secret    string
	public    string // of an ed25519 key, where it is published
	id        string
	timestamp int64
	body      string
	signature string
}

// Known answers from other implementations' tests and documents.
var vectors = []vector{
	{
		name:      "standard-webhooks, libraries/go/webhook_test.go and libraries/javascript: symmetric",
		secret:    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		id:        "msg_p5jXN8AQM9LWM0D4loKWxJek",
		timestamp: 1614265330,
		body:      `{"test": 2432232314}`,
		signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	},
	{
		name:      "standard-webhooks, libraries/go/webhook_asymmetric_test.go: ed25519, the key as its seed",
		secret:    "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=",
		id:        "msg_p5jXN8AQM9LWM0D4loKWxJek",
		timestamp: 1614265330,
		body:      `{"test": 2432232314}`,
		signature: "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag==",
	},
	{
		name: "the example of the specification's webhook-signature, whose key is in svix-server's tests: " +
			"ed25519, 64 bytes",
		secret:    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
		public:    "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=",
		id:        "msg_p5jXN8AQM9LWM0D4loKWxJek",
		timestamp: 1614265330,
		body:      `{"test": 2432232314}`,
		signature: "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
	},
	{
		name:      "svix-server, its test of signing: symmetric, base64 with a plus",
		secret:    "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
		id:        "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
		timestamp: 1649367553,
		body:      `{"email":"test@example.com","username":"test_user"}`,
		signature: "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
	},
}

// shortSecret is a secret of svix's documents, of 18 bytes: the specification asks for 24.
const shortSecret = "whsec_plJ3nmyCDGBKInavdOK15jsl"

func (v vector) header() http.Header {
	return headers(v.id, v.timestamp, v.signature)
}

func (v vector) at() time.Time { return time.Unix(v.timestamp, 0) }

func headers(id string, timestamp int64, signature string) http.Header {
	return http.Header{
		HeaderID:        {id},
		HeaderTimestamp: {strconv.FormatInt(timestamp, 10)},
		HeaderSignature: {signature},
	}
}
