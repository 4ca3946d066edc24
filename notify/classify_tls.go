package notify

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/policy"
)

const noVersion = "no version of it from 1.2 on is spoken at this port"

// renegotiationText is the text for a receiver that begins a second handshake, as it does to ask for a certificate for
// one path.
const renegotiationText = "TLS: the receiver asks for a certificate after the request (renegotiation), which " +
	"Ringback does not answer: " +
	"let it ask in the handshake, and set the topic's client_cert"

// Hints at what to do about old devices and receivers, which Go's newer defaults exclude.
const (
	helloHint = "; if curl reaches it, something on the way may fail on a ClientHello of two packets: start " +
		"Ringback with GODEBUG=tlsmlkem=0"
	cipherHint = "; if curl reaches it, it may know RSA key exchange only: start Ringback with GODEBUG=tlsrsakex=1"
)

// handshakeFailure classifies the error of a TLS handshake.
func handshakeFailure(e *conn.HandshakeError) (policy.ErrorClass, string) {
	if class, text := tlsFailure(e.Err, e.Asked); class != policy.ClassNone {
		return class, "TLS: " + text
	}
	return policy.ClassTLS, "TLS: " + strings.TrimPrefix(e.Error(), "tls: ")
}

// tlsFailure classifies a TLS error; ClassNone: unknown. asked reports that the receiver requested a certificate.
func tlsFailure(err error, asked bool) (class policy.ErrorClass, text string) {
	if code, ok := remoteAlert(err); ok {
		switch class, text = alertFailure(code, err); {
		case code != alertHandshakeFailure && code != alertInsufficientSecurity:
			return class, text
		case asked:
			return policy.ClassTLSClient, clientText(err)
		}
		return class, text + cipherHint
	}
	if class := certificateFailure(err); class != policy.ClassNone {
		return class, strings.TrimPrefix(err.Error(), "tls: ")
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return policy.ClassTLSVersion, "the port does not speak TLS"
	}
	if strings.Contains(err.Error(), "unsupported protocol version") { // the error has no type
		return policy.ClassTLSVersion, noVersion
	}
	if errors.Is(err, io.EOF) {
		return policy.ClassTLS, "the connection was closed in the handshake" + helloHint
	}
	if errors.Is(err, syscall.ECONNRESET) {
		return policy.ClassTLS, "the connection was reset in the handshake" + helloHint
	}
	return policy.ClassNone, ""
}

// certificateFailure describes the error of a receiver's certificate.
func certificateFailure(err error) policy.ErrorClass {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		switch invalid.Reason {
		case x509.Expired: // or not valid yet
			return policy.ClassTLSExpired
		case x509.NotAuthorizedToSign, x509.CANotAuthorizedForThisName, x509.CANotAuthorizedForExtKeyUsage,
			x509.TooManyIntermediates:
			return policy.ClassTLSAuthority
		default:
			return policy.ClassTLS
		}
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return policy.ClassTLSName
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return policy.ClassTLSAuthority
	}
	return policy.ClassNone
}

// TLS alerts that end a connection (RFC 8446 §6.2).
const (
	alertHandshakeFailure      = 40
	alertBadCertificate        = 42
	alertUnsupportedCert       = 43
	alertCertificateRevoked    = 44
	alertCertificateExpired    = 45
	alertCertificateUnknown    = 46
	alertUnknownCA             = 48
	alertAccessDenied          = 49
	alertProtocolVersion       = 70
	alertInsufficientSecurity  = 71
	alertInappropriateFallback = 86
	alertCertificateRequired   = 116
)

// alertFailure classifies an alert of a receiver during the handshake or after it: with TLS 1.3 the receiver checks our
// certificate after our side of the handshake ended.
func alertFailure(code tls.AlertError, err error) (policy.ErrorClass, string) {
	switch code {
	case alertBadCertificate, alertUnsupportedCert, alertCertificateRevoked, alertCertificateExpired,
		alertCertificateUnknown,
		alertUnknownCA, alertAccessDenied, alertCertificateRequired:
		return policy.ClassTLSClient, clientText(err)
	case alertProtocolVersion, alertInappropriateFallback:
		return policy.ClassTLSVersion, noVersion
	default:
		return policy.ClassTLS, "the connection was ended: " + alertText(err)
	}
}

func clientText(err error) string {
	return "the receiver asks for a certificate, or refuses the one that it was shown: " + alertText(err)
}

// alertText returns the name of an alert.
func alertText(err error) string {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err
	}
	return strings.TrimPrefix(err.Error(), "tls: ")
}

// remoteAlert returns the alert that a peer sent. Its type in crypto/tls is private, so its text is parsed.
func remoteAlert(err error) (tls.AlertError, bool) {
	e, ok := errors.AsType[*net.OpError](err)
	if !ok || e.Op != "remote error" {
		return 0, false
	}
	text := e.Err.Error()
	for code := range tls.AlertError(255) {
		if code.Error() == text {
			return code, true
		}
	}
	return 0, true
}
