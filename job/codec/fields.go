package codec

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// The defaults of absent fields: the values of most jobs.
const (
	defaultMethod = http.MethodPost
	defaultKind   = job.BodyJSON
)

var urlField = field[job.Spec]{
	TagURL, "url", func(b []byte, s *job.Spec) []byte { return appendURL(b, s.Lane, s.URL) },
	func(s *job.Spec, value []byte) (err error) {
		s.URL, err = readURL(s.Lane, value)
		return err
	},
}

var headerField = field[job.Spec]{
	5, "headers", func(b []byte, s *job.Spec) []byte { return appendHeader(b, s.Header) },
	func(s *job.Spec, value []byte) (err error) {
		s.Header, err = readHeader(value)
		return err
	},
}

// urlIndex is the index of urlField in specFields.
const urlIndex = 1

// specFields are the fields of job.Spec in encoding order. A new field gets an entry here with an unused tag.
var specFields = []field[job.Spec]{
	{1, "body", func(b []byte, s *job.Spec) []byte {
		if s.BodyKind == defaultKind {
			return b
		}
		return append(b, byte(s.BodyKind))
	}, func(s *job.Spec, value []byte) error {
		if len(value) != 1 {
			return ErrMalformed
		}
		s.BodyKind = job.BodyKind(value[0])
		return nil
	}},
	urlField,
	{3, "method", func(b []byte, s *job.Spec) []byte {
		if s.Method == defaultMethod {
			return b
		}
		return append(b, s.Method...)
	}, func(s *job.Spec, value []byte) error {
		s.Method = string(value)
		return nil
	}},
	{4, "content_type", appendContentType, func(s *job.Spec, value []byte) error {
		s.ContentType = string(value)
		return nil
	}},
	headerField,
	{
		6, "labels", func(b []byte, s *job.Spec) []byte { return appendLabels(b, s.Labels) },
		func(s *job.Spec, value []byte) (err error) {
			s.Labels, err = readLabels(value)
			return err
		},
	},
	{7, "ladder", func(b []byte, s *job.Spec) []byte {
		for _, rung := range s.Ladder {
			b = binary.AppendUvarint(b, uint64(rung))
		}
		return b
	}, func(s *job.Spec, value []byte) error {
		for len(value) > 0 {
			rung, width := binary.Uvarint(value)
			if width <= 0 {
				return ErrMalformed
			}
			s.Ladder = append(s.Ladder, time.Duration(rung))
			value = value[width:]
		}
		return nil
	}},
	{8, "retries", func(b []byte, s *job.Spec) []byte {
		if s.Retries == nil {
			return b
		}
		return binary.AppendUvarint(b, uint64(*s.Retries))
	}, func(s *job.Spec, value []byte) error {
		n, err := readUint(value)
		s.Retries = new(int(n))
		return err
	}},
	durationField(9, "timeout", func(s *job.Spec) *time.Duration { return &s.Timeout }),
	{
		10, "on_delivered", func(b []byte, s *job.Spec) []byte { return appendCallback(b, s.OnDelivered) },
		func(s *job.Spec, value []byte) error { return json.Unmarshal(value, &s.OnDelivered) },
	},
	{
		11, "on_dead", func(b []byte, s *job.Spec) []byte { return appendCallback(b, s.OnDead) },
		func(s *job.Spec, value []byte) error { return json.Unmarshal(value, &s.OnDead) },
	},
	textField(12, "kind", func(s *job.Spec) *string { return &s.Kind }),
	textField(13, "origin", func(s *job.Spec) *string { return &s.Origin }),
	textField(14, "", func(s *job.Spec) *string { return &s.CreatedBy }),
	{
		TagFirstURL, "", func(b []byte, s *job.Spec) []byte { return appendURL(b, s.Lane, s.FirstURL) },
		func(s *job.Spec, value []byte) (err error) {
			s.FirstURL, err = readURL(s.Lane, value)
			return err
		},
	},
}

// Tags of fields that scripts of an engine change without decoding them. Both have the same encoding.
const (
	TagURL      = 2
	TagFirstURL = 15
)

// textField returns a field that is encoded as its bytes.
func textField[T any](tag byte, name string, of func(*T) *string) field[T] {
	return field[T]{
		tag, name, func(b []byte, from *T) []byte { return append(b, *of(from)...) }, func(to *T, value []byte) error {
			*of(to) = string(value)
			return nil
		},
	}
}

// durationField returns a field that is encoded as nanoseconds.
func durationField[T any](tag byte, name string, of func(*T) *time.Duration) field[T] {
	return field[T]{
		tag, name, func(b []byte, from *T) []byte { return appendDuration(b, *of(from)) },
		func(to *T, value []byte) error { return readDuration(of(to), value) },
	}
}

// newFields are the fields of job.New that specFields does not have.
var newFields = []field[job.New]{
	textField(64, "namespace", func(n *job.New) *string { return &n.Namespace }),
	textField(65, "topic", func(n *job.New) *string { return &n.Topic }),
	textField(66, "lane", func(n *job.New) *string { return &n.Lane }),
	textField(67, "id", func(n *job.New) *string { return &n.ID }),
	{
		68, "body", func(b []byte, n *job.New) []byte { return append(b, n.Body...) },
		func(n *job.New, value []byte) error {
			n.Body = value
			return nil
		},
	},
	durationField(69, "delay", func(n *job.New) *time.Duration { return &n.Delay }),
	{
		70, "run_at", func(b []byte, n *job.New) []byte {
			if n.RunAt.IsZero() {
				return b
			}
			return appendTime(b, n.RunAt.Add(time.Millisecond-1)) // rounded up: never early
		},
		func(n *job.New, value []byte) error { return readTime(&n.RunAt, value) },
	},
	durationField(71, "expires_in", func(n *job.New) *time.Duration { return &n.ExpiresIn }),
	{
		72, "expires_at", func(b []byte, n *job.New) []byte { return appendTime(b, n.ExpiresAt) },
		func(n *job.New, value []byte) error { return readTime(&n.ExpiresAt, value) },
	},
}

// noType encodes an empty content type where the body's kind has a default.
const noType = "\x00"

func appendContentType(b []byte, s *job.Spec) []byte {
	switch s.ContentType {
	case s.BodyKind.ContentType():
		return b
	case "":
		return append(b, noType...)
	default:
		return append(b, s.ContentType...)
	}
}

// typeOrDefault returns the content type for a decoded field.
func typeOrDefault(s *job.Spec) string {
	switch s.ContentType {
	case "":
		return s.BodyKind.ContentType()
	case noType:
		return ""
	default:
		return s.ContentType
	}
}

func appendCallback(b []byte, c *policy.Callback) []byte {
	if c == nil {
		return b
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("codec: a callback always has a JSON form: %v", err))
	}
	return append(b, text...)
}
