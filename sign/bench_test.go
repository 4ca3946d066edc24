package sign

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func BenchmarkSign(b *testing.B) {
	body, at := make([]byte, 1024), time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		name    string
		secrets []Secret
	}{
		{"one secret", []Secret{NewSecret()}},
		{"two secrets", []Secret{NewSecret(), NewSecret()}},
		{"one key", []Secret{NewKey()}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newSigner(b, c.secrets...)
			b.ReportAllocs()
			for b.Loop() {
				s.Sign("0123456789abcdefghijk", at, body)
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	body, at := make([]byte, 1024), time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		name   string
		secret Secret
	}{{"secret", NewSecret()}, {"key", NewKey()}} {
		b.Run(c.name, func(b *testing.B) {
			v, err := NewVerifier(c.secret.Text())
			require.NoError(b, err)
			header := headers("msg_1", at.Unix(), newSigner(b, c.secret).Sign("msg_1", at, body))
			b.ReportAllocs()
			for b.Loop() {
				if err := v.Verify(header, body, at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
