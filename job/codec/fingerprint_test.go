package codec_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
)

// registration returns a registration with every field.
func registration() *job.New {
	return &job.New{
		Spec: job.Spec{
			ID: "order-4711", Queue: job.Queue{Namespace: "default", Topic: "orders", Lane: "shop.example:443"},
			URL: "https://shop.example/hooks", Method: "POST",
			Header:      map[string][]string{"X-A": {"1", "2"}, "X-B": {"3"}, "X-C": {"4"}},
			ContentType: "application/json", BodyKind: job.BodyJSON, Body: []byte(`{"n":1}`),
			Labels: map[string]string{"a": "1", "b": "2", "c": "3"},
			Terms: policy.Terms{
				Ladder:  policy.Ladder{time.Second, time.Minute},
				Retries: new(5), Timeout: time.Second,
			},
			Kind: "callback", Origin: "parent",
		},
		Delay: time.Minute, ExpiresIn: time.Hour,
	}
}

func TestFingerprint_EqualsForEqualRequests(t *testing.T) {
	first := codec.Fingerprint(registration())
	require.Len(t, first, 16)
	for range 20 { // maps are walked in another order each time
		require.Equal(t, first, codec.Fingerprint(registration()))
	}
}

// Fingerprints are stored. When one changes, every repeated registration of what was registered before is a 409. The
// fields are written out here by hand, as the package documents them.
func TestFingerprint_IsStable(t *testing.T) {
	at := time.Date(2030, 1, 31, 8, 0, 0, 123_000_000, time.UTC)
	for name, c := range map[string]struct {
		of     job.New
		fields string
	}{
		"nothing": {job.New{}, "\x01\x01\x00"},
		"an id and a URL": {
			job.New{Spec: job.Spec{ID: "close-4711", URL: "https://shop.example/"}},
			"\x43\x0aclose-4711" + "\x01\x01\x00" + "\x02\x16\x00https://shop.example/",
		},
		"a body": {
			job.New{Spec: job.Spec{Body: []byte("{}"), BodyKind: job.BodyText, ContentType: "text/plain; " +
				"charset=utf-8"}},
			"\x01\x01\x02",
		},
		"a body of JSON": {
			job.New{Spec: job.Spec{Body: []byte("{}"), BodyKind: job.BodyJSON, ContentType: "application/json"}},
			"",
		},
		"no callback": {
			job.New{Spec: job.Spec{BodyKind: job.BodyJSON, ContentType: "application/json", Terms: policy.Terms{
				OnDead: &policy.Callback{Off: true},
			}}},
			"\x0b\x15{\"url\":\"\",\"off\":true}",
		},
		"times": {
			job.New{
				Spec: job.Spec{BodyKind: job.BodyJSON, ContentType: "application/json"}, RunAt: at,
				ExpiresAt: at.Add(time.Hour),
			},
			"\x46\x06" + string(binary.AppendVarint(nil, at.UnixMilli())) + "\x48\x06" +
				string(binary.AppendVarint(nil, at.Add(time.Hour).UnixMilli())),
		},
		"everything": {*registration(), encodedRegistration},
	} {
		h := sha256.New()
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(c.fields))))
		h.Write([]byte(c.fields))
		h.Write(c.of.Body)
		require.Equal(t, h.Sum(nil)[:16], codec.Fingerprint(&c.of), name)
	}
}

// notSent are fields that are not part of a registration: settings of Terms that come from a topic's policy, and the
// name of the client.
var notSent = []string{"Jitter", "MaxAge", "MaxAgeDerived", "GiveUpOn", "Success", "CreatedBy"}

// A field that is added must be printed, and must not change the fingerprint of what does not use it.
func TestFingerprint_CoversEveryField(t *testing.T) {
	seen := map[string]string{string(codec.Fingerprint(&job.New{})): "nothing"}
	for name, path := range leaves(reflect.TypeFor[job.New](), "", nil) {
		var n job.New
		set(reflect.ValueOf(&n).Elem().FieldByIndex(path))
		text := string(codec.Fingerprint(&n))
		require.NotContains(t, seen, text, "%s is not seen: it is taken for %s", name, seen[text])
		seen[text] = name
	}
	for name, path := range leaves(reflect.TypeFor[policy.Callback](), "", nil) {
		var c policy.Callback
		set(reflect.ValueOf(&c).Elem().FieldByIndex(path))
		n := job.New{Spec: job.Spec{Terms: policy.Terms{OnDead: &c}}}
		text := string(codec.Fingerprint(&n))
		require.NotContains(t, seen, text, "%s of a callback is not seen: it is taken for %s", name, seen[text])
		seen[text] = name
	}
}

// leaves are the fields of a struct, and of those embedded in it.
func leaves(of reflect.Type, parent string, path []int) map[string][]int {
	found := make(map[string][]int)
	for i := range of.NumField() {
		f := of.Field(i)
		at := append(slices.Clone(path), i)
		switch {
		case f.Anonymous:
			maps.Copy(found, leaves(f.Type, parent+f.Name+".", at))
		case !slices.Contains(notSent, f.Name):
			found[parent+f.Name] = at
		}
	}
	return found
}

// set gives a field a value other than zero.
func set(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		v.Set(reflect.ValueOf(time.UnixMilli(1)))
	default:
		panic("a field of kind " + v.Kind().String())
	}
}

func TestFingerprint_DiffersByEveryField(t *testing.T) {
	seen := map[string]string{string(codec.Fingerprint(registration())): "the registration itself"}
	for name, change := range map[string]func(*job.New){
		"id":                  func(n *job.New) { n.ID = "order-4712" },
		"namespace":           func(n *job.New) { n.Namespace = "other" },
		"topic":               func(n *job.New) { n.Topic = "mails" },
		"lane":                func(n *job.New) { n.Lane = "customer-1" },
		"url":                 func(n *job.New) { n.URL += "?a=1" },
		"method":              func(n *job.New) { n.Method = "PUT" },
		"header value":        func(n *job.New) { n.Header["X-B"] = []string{"4"} },
		"header order":        func(n *job.New) { n.Header["X-A"] = []string{"2", "1"} },
		"header joined":       func(n *job.New) { n.Header["X-A"] = []string{"1, 2"} },
		"no header":           func(n *job.New) { n.Header = nil },
		"content type":        func(n *job.New) { n.ContentType = "text/plain" },
		"kind of body":        func(n *job.New) { n.BodyKind = job.BodyText },
		"body":                func(n *job.New) { n.Body = []byte(`{"n": 1}`) },
		"no body":             func(n *job.New) { n.Body = nil },
		"label":               func(n *job.New) { n.Labels["a"] = "2" },
		"ladder":              func(n *job.New) { n.Ladder = policy.Ladder{time.Second} },
		"retries":             func(n *job.New) { n.Retries = new(6) },
		"no retries":          func(n *job.New) { n.Retries = new(0) },
		"retries unset":       func(n *job.New) { n.Retries = nil },
		"timeout":             func(n *job.New) { n.Timeout = time.Minute },
		"kind":                func(n *job.New) { n.Kind = "" },
		"origin":              func(n *job.New) { n.Origin = "another" },
		"delay":               func(n *job.New) { n.Delay = time.Hour },
		"run time":            func(n *job.New) { n.RunAt = time.UnixMilli(1) },
		"lifetime":            func(n *job.New) { n.ExpiresIn = time.Minute },
		"instant of expiry":   func(n *job.New) { n.ExpiresAt = time.UnixMilli(1) },
		"run time a ms later": func(n *job.New) { n.RunAt = time.UnixMilli(2) },
	} {
		n := registration()
		change(n)
		text := string(codec.Fingerprint(n))
		require.NotContains(t, seen, text, "another %s is not seen: it is taken for %s", name, seen[text])
		seen[text] = name
	}
}

func TestFingerprint_IgnoresTheClient(t *testing.T) {
	n := registration()
	n.CreatedBy = "shop-api"
	require.Equal(t, codec.Fingerprint(registration()), codec.Fingerprint(n))
	require.Equal(t, "shop-api", n.CreatedBy)
}

func TestFingerprint_IgnoresTimeZones(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123_000_000, time.UTC)
	a, b := registration(), registration()
	a.RunAt, b.RunAt = at, at.In(time.FixedZone("UTC+2", 2*3600))
	a.ExpiresAt, b.ExpiresAt = at.Add(time.Hour), at.Add(time.Hour).Local()
	require.Equal(t, codec.Fingerprint(a), codec.Fingerprint(b))
}

func TestFingerprint_DoesNotModifyItsArgument(t *testing.T) {
	n := registration()
	n.RunAt = time.Now()
	before := fmt.Sprintf("%+v", n)
	codec.Fingerprint(n)
	require.Equal(t, before, fmt.Sprintf("%+v", n))
}

// Body and registration are parted in the fingerprint: bytes that move from one to the other change it.
func FuzzFingerprint(f *testing.F) {
	f.Add("http://a.example/", "X-A", "1", []byte("body"), int64(0))
	f.Add("", "", "\x00\xff", []byte{}, int64(-1))
	f.Add("http://a.example/", "X-A", "1", []byte(`"}`), int64(1<<60))
	f.Fuzz(func(t *testing.T, url, key, value string, body []byte, delay int64) {
		n := job.New{
			Spec:  job.Spec{URL: url, Header: map[string][]string{key: {value}}, Body: body},
			Delay: time.Duration(delay),
		}
		first := codec.Fingerprint(&n)
		require.Len(t, first, 16)
		require.Equal(t, first, codec.Fingerprint(&n))
		n.Body = append(append([]byte(nil), body...), 0)
		require.NotEqual(t, first, codec.Fingerprint(&n), "a longer body")
		n.Body, n.Delay = body, n.Delay^1
		require.NotEqual(t, first, codec.Fingerprint(&n), "another delay")
	})
}
