package badreceiver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
)

// secure shakes hands with a server's settings, and serves well if anybody goes along.
func secure(settings func(*chain) *tls.Config) func(*conn) {
	return func(c *conn) {
		certs, err := certificates()
		if err != nil {
			return // Start has reported it
		}
		secured := tls.Server(c.Conn, settings(certs))
		if secured.HandshakeContext(context.Background()) == nil { // ends with its connection at the latest
			always(okAnswer)(c.over(secured))
		}
	}
}

func good(c *chain) *tls.Config      { return present(c.good) }
func wrongHost(c *chain) *tls.Config { return present(c.wrongHost) }
func expired(c *chain) *tls.Config   { return present(c.expired) }
func unknown(c *chain) *tls.Config   { return present(c.unknown) }

// old has nothing wrong with it but its version.
func old(c *chain) *tls.Config {
	config := present(c.good)
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	return config
}

// present shows a certificate.
func present(cert tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
}

// plain answers a greeting as web servers do that expected a request.
func plain(c *conn) {
	if c.greeting() && c.say("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nthis port speaks no TLS\n") {
		c.finish()
		c.hold()
	}
}

// greeting reads the first record of a TLS connection; false when none comes.
func (c *conn) greeting() bool {
	var head [5]byte // type, version, and the length of what follows
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return false
	}
	_, err := io.CopyN(io.Discard, c.in, int64(binary.BigEndian.Uint16(head[3:])))
	return err == nil
}
