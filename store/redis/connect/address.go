package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/internal/fileread"
)

// A form is a kind of deployment.
type form int

const (
	single   form = iota // one server
	sentinel             // a primary, its replicas, and sentinels that name the primary
	cluster              // several primaries, which share the slots
)

// An Address is a parsed URL of Redis with the client's options. It prints without passwords.
type Address struct {
	form    form
	hosts   []string // host:port of the sentinels, or of nodes of the cluster
	options redis.Options
	// master is the primary's name at the sentinels; user and password authenticate with the sentinels.
	master, user, password string
	serverName             string // of certificates; empty: the host that is dialled
	files                  tlsFiles
	secured                *atomic.Pointer[tls.Config] // of new connections, with the content of files; nil: no TLS
	shown                  string
}

// Within returns the address for calls of which each connection and each reply may take at most limit.
func (a Address) Within(limit time.Duration) Address {
	a.setDefaults()
	o := &a.options
	o.DialTimeout, o.ReadTimeout, o.PoolTimeout = min(o.DialTimeout, limit), min(o.ReadTimeout, limit),
		min(o.PoolTimeout, limit)
	o.MaxRetries = -1
	return a
}

// Certificates returns the names of the files with certificates.
func (a Address) Certificates() []string { return named(a.files.ca, a.files.cert) }

// Files returns the names of the files with certificates and keys.
func (a Address) Files() []string { return named(a.files.ca, a.files.cert, a.files.key) }

// named returns the names that are not empty.
func named(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// IsCluster reports whether it is that of a cluster.
func (a Address) IsCluster() bool { return a.form == cluster }

// String is the address without passwords and options.
func (a Address) String() string { return a.shown }

// errURL replaces errors of URL parsers: their text may contain part of a password that was not encoded. A '#' would
// end the URL before the host, so that the password is taken for a port.
var errURL = errors.New("redis: the URL cannot be read: it must be redis://[user:password@]host[:port][/database], " +
	"rediss:// " +
	"for TLS, unix://[user:password@]/path, redis+sentinel://host[:port],…[/database]?master_name=NAME, or " +
	"redis+cluster://host[:port],…, " +
	"with known options after '?'; percent-encode / # ? @ % in a user or password")

// ParseAddress parses the URL of a Redis:
//
//	redis://[user:password@]host[:port][/database]    one server; rediss:// with TLS
//	unix://[user:password@]/path[?db=database]        one server, by its socket
//	redis+sentinel://[user:password@]host[:port],…[/database]?master_name=NAME[&sentinel_user=…&sentinel_password=…]
//	redis+cluster://[user:password@]host[:port],…     any of the cluster's nodes
//
// rediss+sentinel and rediss+cluster speak TLS. User and password are Redis's own. Ports left out are 6379, of
// sentinels 26379. Options after '?' are those of go-redis's ParseURL, and for TLS: tls_ca (a file of certificates to
// trust instead of the system's), tls_cert and tls_key (files of a client certificate), tls_server_name (the name in
// the server's certificate, if not the host). Errors never contain a password.
func ParseAddress(text string) (Address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || strings.Contains(text, "#") {
		return Address{}, errURL
	}
	var a Address
	scheme, kind, _ := strings.Cut(scheme, "+")
	switch kind {
	case "":
	case "sentinel":
		a.form = sentinel
	case "cluster":
		a.form = cluster
	default:
		return Address{}, errURL
	}
	if a.form != single && scheme != "redis" && scheme != "rediss" {
		return Address{}, errURL
	}
	place, query, _ := strings.Cut(rest, "?")
	// A plus is not decoded to a space: passwords may contain it, and no option contains a space.
	options, err := url.ParseQuery(strings.ReplaceAll(query, "+", "%2B"))
	if err != nil {
		return Address{}, errURL
	}
	switch {
	case a.form != single:
		if place, err = a.takeHosts(place); err != nil {
			return Address{}, err
		}
	default:
		authority, _, _ := strings.Cut(place, "/")
		host := authority[strings.LastIndexByte(authority, '@')+1:]
		switch {
		case (scheme == "unix") != (host == ""): // go-redis would take localhost, and another file
			return Address{}, errURL
		case strings.Contains(host, ","):
			return Address{}, errors.New("redis: several hosts are for redis+sentinel:// and redis+cluster://")
		}
	}
	a.files = tlsFiles{ca: take(options, "tls_ca"), cert: take(options, "tls_cert"), key: take(options, "tls_key")}
	a.serverName = take(options, "tls_server_name")
	if a.form == sentinel {
		a.master, a.user, a.password = take(options, "master_name"), take(options, "sentinel_user"), take(options,
			"sentinel_password")
		if a.master == "" {
			return Address{}, errors.New("redis: the URL of sentinels needs ?master_name=, the name under which they " +
				"know the primary")
		}
	}
	plain := scheme + "://" + place
	if len(options) > 0 {
		plain += "?" + options.Encode()
	}
	parsed, err := redis.ParseURL(plain)
	if err != nil {
		return Address{}, errURL
	}
	if parsed.DialTimeout < 0 || parsed.ReadTimeout < 0 {
		return Address{}, errors.New("redis: dial_timeout and read_timeout must be above zero")
	}
	if a.form == cluster && parsed.DB != 0 {
		return Address{}, errors.New("redis: a cluster has database 0 only: leave the number out")
	}
	a.options = *parsed
	if err := a.secure(); err != nil {
		return Address{}, err
	}
	a.shown = a.show(text)
	return a, nil
}

// take removes an option and returns its value.
func take(options url.Values, name string) string {
	value := options.Get(name)
	options.Del(name)
	return value
}

// takeHosts parses the hosts between user and path, and returns the URL with the first of them only.
func (a *Address) takeHosts(place string) (string, error) {
	authority, path, slash := strings.Cut(place, "/")
	before := ""
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		before, authority = authority[:at+1], authority[at+1:]
	}
	standard := "6379"
	if a.form == sentinel {
		standard = "26379"
	}
	for host := range strings.SplitSeq(authority, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), standard)
		}
		name, port, err := net.SplitHostPort(host)
		if err != nil || name == "" || strings.ContainsAny(name, " @?#") {
			return "", errURL
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return "", errURL
		}
		a.hosts = append(a.hosts, host)
	}
	place = before + a.hosts[0]
	if slash {
		place += "/" + path
	}
	return place, nil
}

// tlsFiles are the files that the URL names for TLS.
type tlsFiles struct{ ca, cert, key string }

// secure checks the options for TLS and loads the files.
func (a *Address) secure() error {
	config := a.options.TLSConfig
	if config == nil {
		if a.files != (tlsFiles{}) || a.serverName != "" {
			return errors.New("redis: tls_ca, tls_cert, tls_key and tls_server_name are for rediss:// only")
		}
		return nil
	}
	if (a.files.cert == "") != (a.files.key == "") {
		return errors.New("redis: tls_cert and tls_key are needed together")
	}
	config.ServerName = a.serverName // empty: the dialer takes the host
	config.MinVersion = tls.VersionTLS12
	a.secured = new(atomic.Pointer[tls.Config])
	return a.loadFiles()
}

// loadFiles reads the files for TLS, for new connections. After an error what was read before stays in force.
func (a *Address) loadFiles() error {
	config, files := a.options.TLSConfig.Clone(), a.files
	if files.ca != "" {
		text, err := fileread.ReadPEM(files.ca)
		if err != nil {
			return fmt.Errorf("redis: read tls_ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("redis: tls_ca: %s holds no certificate", files.ca)
		}
	}
	if files.cert != "" {
		pair, err := fileread.KeyPair(files.cert, files.key)
		if err != nil {
			return fmt.Errorf("redis: read tls_cert and tls_key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	a.secured.Store(config)
	return nil
}

// show formats the address without passwords and options.
func (a *Address) show(text string) string {
	scheme, _, _ := strings.Cut(text, "://")
	user := ""
	if a.options.Username != "" || a.options.Password != "" {
		user = url.UserPassword(a.options.Username, "xxxxx").String() + "@"
	}
	switch {
	case a.options.Network == "unix":
		return scheme + "://" + user + a.options.Addr
	case a.form == sentinel:
		return fmt.Sprintf("%s://%s%s/%d?master_name=%s", scheme, user, strings.Join(a.hosts, ","), a.options.DB,
			url.QueryEscape(a.master))
	case a.form == cluster:
		return scheme + "://" + user + strings.Join(a.hosts, ",")
	default:
		return fmt.Sprintf("%s://%s%s/%d", scheme, user, a.options.Addr, a.options.DB)
	}
}
