package badreceiver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
)

// secure makes a TLS handshake, and serves if it succeeds.
func secure(settings func(*chain) *tls.Config, serve func(*conn)) func(*conn) {
	return func(c *conn) {
		certs, err := certificates()
		if err != nil {
			return // Start has reported it
		}
		secured := tls.Server(c.Conn, settings(certs))
		if secured.HandshakeContext(context.Background()) == nil { // ends with its connection at the latest
			serve(c.over(secured))
		}
	}
}

func good(c *chain) *tls.Config      { return present(c.good) }
func wrongHost(c *chain) *tls.Config { return present(c.wrongHost) }
func expired(c *chain) *tls.Config   { return present(c.expired) }
func unknown(c *chain) *tls.Config   { return present(c.unknown) }

// old allows no version after TLS 1.1.
func old(c *chain) *tls.Config {
	config := present(c.good)
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	return config
}

// present returns a configuration with a certificate.
func present(cert tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
}

// tooMuch returns a configuration with 200 KiB of certificates.
func tooMuch(c *chain) *tls.Config {
	cert := c.good
	cert.Certificate = append(cert.Certificate[:1:1], filler()...)
	return present(cert)
}

// much returns a configuration with FullChain certificates, different for each connection.
func much(c *chain) *tls.Config {
	cert := c.good
	cert.Certificate = append(cert.Certificate[:1:1], unlike(filler()[:FullChain-1])...)
	return present(cert)
}

// stalls stops sending after a number of bytes.
func stalls(size int, serve func(*conn)) func(*conn) {
	return func(c *conn) {
		limited := &limitedConn{Conn: c.Conn}
		limited.left.Store(int64(size))
		serve(c.over(limited))
		if limited.left.Load() <= 0 {
			c.hold()
		}
	}
}

// limitedConn discards writes beyond a number of bytes.
type limitedConn struct {
	net.Conn

	left atomic.Int64
}

func (c *limitedConn) Write(p []byte) (int, error) {
	left := c.left.Add(-int64(len(p))) + int64(len(p))
	if left <= 0 {
		return len(p), nil
	}
	if _, err := c.Conn.Write(p[:min(int64(len(p)), left)]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// bigTicket sends a session ticket through crypto/tls at the end of the handshake.
func bigTicket(c *conn) {
	certs, err := certificates()
	if err != nil {
		return // Start has reported it
	}
	limited := &limitedConn{Conn: c.Conn}
	limited.left.Store(Gigabyte)
	config := present(certs.good)
	config.MinVersion = tls.VersionTLS13
	config.WrapSession = func(tls.ConnectionState, *tls.SessionState) ([]byte, error) {
		limited.left.Store(50 << 10)
		return make([]byte, 60<<10), nil
	}
	secured := tls.Server(limited, config)
	if secured.HandshakeContext(context.Background()) == nil && c.over(secured).request() != nil {
		c.hold()
	}
}

// recordStalls sends the head of a record and most of its length. The bytes need not be encrypted, since the peer
// decrypts a record only when it is complete.
func recordStalls(c *conn) {
	record := append([]byte{23, 3, 3, 0x40, 0}, body[:15<<10]...)
	if _, err := c.tcp.Write(record); err == nil {
		c.hold()
	}
}

// plain responds to a ClientHello with an HTTP error, as web servers do.
func plain(c *conn) {
	if c.greeting() && c.say("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nthis port speaks no TLS\n") {
		c.finish()
		c.hold()
	}
}

// greeting reads the first record of a TLS connection and reports success.
func (c *conn) greeting() bool {
	var head [5]byte // type, version, and the length of what follows
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return false
	}
	_, err := io.CopyN(io.Discard, c.in, int64(binary.BigEndian.Uint16(head[3:])))
	return err == nil
}
