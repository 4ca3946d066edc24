package badreceiver_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/internal/badreceiver"
	"github.com/ringback/ringback/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a plain one that trusts the authority of the receivers and makes a connection a request.
func client(t *testing.T) *http.Client {
	t.Helper()
	return &http.Client{Timeout: testkit.MustCome, Transport: &http.Transport{
		DisableKeepAlives:  true,
		DisableCompression: true,
		TLSClientConfig:    &tls.Config{RootCAs: badreceiver.Roots(t), MinVersion: tls.VersionTLS12},
	}}
}

// dial makes a connection that is closed with the test.
func dial(t *testing.T, r *badreceiver.Receiver) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.MustCome)
	defer cancel()
	_, addr, _ := strings.Cut(r.URL, "://")
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// call dials and sends a request.
func call(t *testing.T, r *badreceiver.Receiver) net.Conn {
	t.Helper()
	c, err := dial(t, r)
	require.NoError(t, err)
	_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
	require.NoError(t, err)
	return c
}

func TestReceiver_GoodKindsRespond(t *testing.T) {
	for _, kind := range []badreceiver.Kind{badreceiver.Good, badreceiver.GoodTLS} {
		r := badreceiver.Start(t, kind)
		for range 3 {
			resp, err := client(t).Post(r.URL+"/hook", "text/plain", strings.NewReader("hi"))
			require.NoError(t, err, kind)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err, kind)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode, kind)
			require.Equal(t, "ok", string(body), kind)
		}
		require.Equal(t, 3, r.Conns(), kind)
		require.Equal(t, 3, r.Requests(), kind)
		want := int64(3 * len("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"))
		require.Eventually(t, func() bool { return r.Sent() == want }, testkit.MustCome, time.Millisecond, kind)
	}
}

func TestReceiver_EveryKindStopsDuringARequest(t *testing.T) {
	for _, kind := range append([]badreceiver.Kind{badreceiver.Good, badreceiver.GoodTLS}, badreceiver.All...) {
		var began time.Time
		t.Run(string(kind), func(t *testing.T) {
			r := badreceiver.Start(t, kind)
			if kind != badreceiver.NeverAccepts && kind != badreceiver.Refuses {
				_ = call(t, r)
				require.Eventually(t, func() bool { return r.Conns() == 1 }, testkit.MustCome, time.Millisecond)
			}
			began = time.Now()
		})
		require.Less(t, time.Since(began), testkit.MustCome, kind)
	}
}

func TestReceiver_AcceptsNoConnection(t *testing.T) {
	r := badreceiver.Start(t, badreceiver.NeverAccepts)
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(r.URL, "http://"))
		cancel()
		require.ErrorContains(t, err, "timeout")
	}
	require.Zero(t, r.Conns())

	_, err := dial(t, badreceiver.Start(t, badreceiver.Refuses))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestReceiver_SendsNoResponse(t *testing.T) {
	for kind, end := range map[badreceiver.Kind]error{
		badreceiver.NeverAnswers: os.ErrDeadlineExceeded, badreceiver.HangsHandshake: os.ErrDeadlineExceeded,
		badreceiver.HalfClosed: io.EOF,
	} {
		c := call(t, badreceiver.Start(t, kind))
		if kind != badreceiver.HalfClosed {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		}
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, end, kind)
		_, err = io.WriteString(c, "more")
		require.NoError(t, err, kind)
	}
}

func TestReceiver_TruncatesTheBody(t *testing.T) {
	for kind, end := range map[badreceiver.Kind]error{
		badreceiver.ResetsMidAnswer: syscall.ECONNRESET, badreceiver.ClosesMidAnswer: io.ErrUnexpectedEOF,
		badreceiver.PromisesMore: os.ErrDeadlineExceeded,
	} {
		c := call(t, badreceiver.Start(t, kind))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, kind)
		_, err = io.ReadFull(resp.Body, make([]byte, 500))
		require.NoError(t, err, kind)
		if kind == badreceiver.PromisesMore {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		}
		more, err := io.ReadAll(resp.Body)
		require.ErrorIs(t, err, end, kind)
		require.Empty(t, more, kind)
	}
}

// The response is slow or large: a part is enough.
func TestReceiver_SendsOversizedResponses(t *testing.T) {
	for kind, want := range map[badreceiver.Kind]struct {
		prefix string
		size   int64
	}{
		badreceiver.DripsHeader:  {"HTTP/1.1 200 OK\r\nX-Drip: xxx", 30},
		badreceiver.DripsBody:    {"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\nxxx", 50},
		badreceiver.GigabyteBody: {"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n0123456789", 16 << 20},
		badreceiver.EndlessBody: {"HTTP/1.1 200 OK\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n10000\r\n0123456789", 16 << 20},
		badreceiver.HugeHeader:     {"HTTP/1.1 200 OK\r\nX-Filler: xxx", 16 << 20},
		badreceiver.EndlessInterim: {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n", 16 << 20},
	} {
		c := call(t, badreceiver.Start(t, kind))
		prefix := make([]byte, len(want.prefix))
		_, err := io.ReadFull(c, prefix)
		require.NoError(t, err, kind)
		require.Equal(t, want.prefix, string(prefix), kind)
		_, err = io.CopyN(io.Discard, c, want.size-int64(len(prefix)))
		require.NoError(t, err, kind)
	}
}

func TestReceiver_SendsADecompressionBomb(t *testing.T) {
	resp, err := client(t).Get(badreceiver.Start(t, badreceiver.GzipBomb).URL)
	require.NoError(t, err)
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	packed, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Less(t, len(packed), 2<<20)
	one := len(packed) / 128
	require.Equal(t, bytes.Repeat(packed[:one], 128), packed)
	unpack, err := gzip.NewReader(bytes.NewReader(packed[:one]))
	require.NoError(t, err)
	size, err := io.Copy(io.Discard, unpack)
	require.NoError(t, err)
	require.EqualValues(t, badreceiver.Gigabyte/128, size)
}

func TestReceiver_SendsInvalidHTTP(t *testing.T) {
	for kind, want := range map[badreceiver.Kind]string{
		badreceiver.Garbage:    "malformed HTTP",
		badreceiver.NoHeader:   "malformed HTTP",
		badreceiver.TwoLengths: "multiple Content-Length",
	} {
		resp, err := client(t).Get(badreceiver.Start(t, kind).URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		require.ErrorContains(t, err, want, kind)
	}
}

func TestReceiver_SendsAnExtraResponse(t *testing.T) {
	in := bufio.NewReader(call(t, badreceiver.Start(t, badreceiver.SendsMore)))
	for _, want := range []string{"ok", "forged"} {
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, want, string(body))
	}
}

func TestReceiver_ClosesConnectionsUnannounced(t *testing.T) {
	in := bufio.NewReader(call(t, badreceiver.Start(t, badreceiver.ClosesAfter)))
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "ok", string(body))
	require.False(t, resp.Close)
	_, err = in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

func TestReceiver_RespondsAfterTheFirstByte(t *testing.T) {
	r := badreceiver.Start(t, badreceiver.AnswersEarly)
	c, err := dial(t, r)
	require.NoError(t, err)
	_, err = io.WriteString(c, "P")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.Equal(t, 1, r.Requests())
}

func TestReceiver_CountsRedirects(t *testing.T) {
	r := badreceiver.Start(t, badreceiver.Redirects)
	follower := client(t)
	follower.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
	resp, err := follower.Get(r.URL + "/hook")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, 101, r.Requests())
}

func TestCertificates_HaveOneFaultEach(t *testing.T) {
	get := func(kind badreceiver.Kind) error {
		resp, err := client(t).Get(badreceiver.Start(t, kind).URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	var host x509.HostnameError
	require.ErrorAs(t, get(badreceiver.WrongHost), &host)
	var invalid x509.CertificateInvalidError
	require.ErrorAs(t, get(badreceiver.Expired), &invalid)
	require.Equal(t, x509.Expired, invalid.Reason)
	var unknown x509.UnknownAuthorityError
	require.ErrorAs(t, get(badreceiver.UnknownAuthority), &unknown)
	require.ErrorContains(t, get(badreceiver.OldTLS), "protocol version")
	require.ErrorIs(t, get(badreceiver.ClosesHandshake), io.EOF)
	require.ErrorContains(t, get(badreceiver.PlainHTTP), "HTTP response to HTTPS client")
}

func TestReceiver_SpeaksOldTLS(t *testing.T) {
	c, err := dial(t, badreceiver.Start(t, badreceiver.OldTLS))
	require.NoError(t, err)
	secured := tls.Client(c, &tls.Config{
		RootCAs: badreceiver.Roots(t), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS10,
		MaxVersion: tls.VersionTLS11,
	})
	require.NoError(t, secured.HandshakeContext(t.Context()))
}

func TestAuthority_IsWrittenToAFile(t *testing.T) {
	file, err := os.ReadFile(badreceiver.CAFile(t))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(file))
	require.True(t, pool.Equal(badreceiver.Roots(t)))
}
