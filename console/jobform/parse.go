package jobform

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/job/units"
)

// none is the text of a callback that is switched off.
const none = "none"

// parser parses a form and collects what is wrong with it.
type parser struct {
	form   Form
	prefix string
	errors web.FormErrors
}

func (p *parser) fail(field, sentence string) { p.errors.Add(p.prefix+field, sentence) }

// Job returns the job that the form describes. The fields of the errors begin with the prefix. A kept body is nil.
func (f Form) Job(prefix string) (client.Job, web.FormErrors) {
	p := &parser{form: f, prefix: prefix}
	j := client.Job{
		ID: f[ID], Topic: f[Topic], Lane: f[Lane], URL: f[URL], Method: f[Method], Headers: p.headers(), Body: p.body(),
		ContentType: f[ContentType], Delay: p.duration(Delay), RunAt: p.time(RunAt), Retries: p.retries(),
		Ladder: p.ladder(), Timeout: p.duration(Timeout), ExpiresIn: p.duration(ExpiresIn),
		ExpiresAt: p.time(ExpiresAt), Labels: p.labels(), OnDelivered: p.callback(OnDelivered),
		OnDead: p.callback(OnDead),
	}
	p.exclude(Delay, RunAt)
	p.exclude(ExpiresIn, ExpiresAt)
	return j, p.errors
}

// ScheduleJob returns the job of a schedule that the form describes. The fields of the errors begin with the prefix.
func (f Form) ScheduleJob(prefix string) (client.ScheduleJob, web.FormErrors) {
	j, errs := f.Job(prefix)
	return client.ScheduleJob{
		Topic: j.Topic, Lane: j.Lane, URL: j.URL, Method: j.Method, Headers: j.Headers, Body: j.Body,
		ContentType: j.ContentType, Retries: j.Retries, Ladder: j.Ladder, Timeout: j.Timeout, ExpiresIn: j.ExpiresIn,
		Labels: j.Labels, OnDelivered: j.OnDelivered, OnDead: j.OnDead,
	}, errs
}

// Change returns the change that leads from one form of a job to this one: its fields that differ. Fields that were
// emptied are removed. changed is false if nothing differs.
func (f Form) Change(from Form) (c client.Change, changed bool, errs web.FormErrors) {
	p := &parser{form: f}
	for _, name := range EditNames {
		if f[name] == from[name] || name == BodyAs || name == ContentType {
			continue
		}
		changed = true
		if f[name] == "" {
			p.remove(&c, name)
			continue
		}
		p.edit(&c, name)
	}
	if f[Body] != from[Body] || f[BodyAs] != from[BodyAs] || f[ContentType] != from[ContentType] {
		changed = true
		p.changeBody(&c)
	}
	p.exclude(Delay, RunAt)
	if f[ExpiresAt] != from[ExpiresAt] { // the old expiry stands beside a new expires_in
		p.exclude(ExpiresIn, ExpiresAt)
	}
	return c, changed, p.errors
}

// edit sets the field of a change.
func (p *parser) edit(c *client.Change, name string) {
	switch name {
	case URL:
		c.URL = p.form[URL]
	case Headers:
		c.Headers = p.headers()
	case Delay:
		c.Delay = new(p.duration(Delay))
	case RunAt:
		c.RunAt = p.time(RunAt)
	case Retries:
		c.Retries = p.retries()
	case Ladder:
		c.Ladder = p.ladder()
	case Timeout:
		c.Timeout = p.duration(Timeout)
	case ExpiresIn:
		c.ExpiresIn = p.duration(ExpiresIn)
	case ExpiresAt:
		c.ExpiresAt = p.time(ExpiresAt)
	case Labels:
		c.Labels = p.labels()
	}
}

// remove removes a field in a change. Some cannot be removed.
func (p *parser) remove(c *client.Change, name string) {
	switch name {
	case URL:
		p.fail(URL, "cannot be removed: register a copy without it")
	case Retries:
		p.fail(Retries, "cannot be removed: give a number")
	case ExpiresAt:
		if p.form[ExpiresIn] == "" { // which replaces it
			c.Null = append(c.Null, name)
		}
	case Headers, Ladder, Timeout, Labels:
		c.Null = append(c.Null, name)
	}
}

// changeBody sets the body of a change. No body is an empty text: a job cannot lose its body.
func (p *parser) changeBody(c *client.Change) {
	if p.form[BodyAs] == AsKept {
		p.body()
		if p.form[ContentType] != "" {
			p.fail(ContentType, "changes only together with the body")
		}
		return
	}
	if c.Body = p.body(); c.Body == nil {
		c.Body = client.Text("")
	}
	c.ContentType = p.form[ContentType]
}

// exclude refuses two fields that say the same.
func (p *parser) exclude(one, other string) {
	if p.form[one] != "" && p.form[other] != "" {
		p.fail(other, "cannot be combined with "+one)
	}
}

func (p *parser) duration(name string) time.Duration {
	text := p.form[name]
	if text == "" {
		return 0
	}
	d, err := units.ParseDuration(text)
	if err != nil {
		p.fail(name, err.Error())
		return 0
	}
	if d < 0 {
		p.fail(name, "must not be negative")
	}
	return d
}

// ParseTime parses a time as words.ParseTime does.
func ParseTime(text string) (time.Time, error) {
	t, ok := words.ParseTime(text)
	if !ok {
		return t, errors.New("is not a time: write 2026-11-24 14:30 for UTC, or 2026-11-24T14:30:00+01:00")
	}
	return t, nil
}

func (p *parser) time(name string) time.Time {
	if p.form[name] == "" {
		return time.Time{}
	}
	t, err := ParseTime(p.form[name])
	if err != nil {
		p.fail(name, err.Error())
	}
	return t
}

func (p *parser) retries() *int {
	if p.form[Retries] == "" {
		return nil
	}
	n, err := strconv.Atoi(p.form[Retries])
	if err != nil {
		p.fail(Retries, "is not a whole number")
		return nil
	}
	return &n
}

// ParseLadder parses waits that are separated by spaces, commas or lines: "15s, 3m, 10m".
func ParseLadder(text string) ([]time.Duration, error) {
	var ladder []time.Duration
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", ;\t\n\r", r) }) {
		d, err := units.ParseDuration(part)
		if err != nil {
			return nil, err
		}
		ladder = append(ladder, d)
	}
	return ladder, nil
}

func (p *parser) ladder() []time.Duration {
	ladder, err := ParseLadder(p.form[Ladder])
	if err != nil {
		p.fail(Ladder, err.Error())
	}
	return ladder
}

// lines calls read with each line of a field that is not blank.
func (p *parser) lines(name string, read func(line string) (ok bool), want string) {
	for i, line := range strings.Split(p.form[name], "\n") {
		if strings.TrimSpace(line) != "" && !read(line) {
			p.fail(name, "line "+itoa(i+1)+" is not of the form "+want)
		}
	}
}

func (p *parser) headers() client.Headers {
	var headers client.Headers
	p.lines(Headers, func(line string) bool {
		name, value, ok := strings.Cut(line, ":")
		name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))
		if !ok || name == "" {
			return false
		}
		if headers == nil {
			headers = make(client.Headers)
		}
		headers[name] = append(headers[name], strings.TrimSpace(value))
		return true
	}, "Name: value")
	return headers
}

func (p *parser) labels() map[string]string {
	var labels map[string]string
	p.lines(Labels, func(line string) bool {
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return false
		}
		if value, ok = unquote(strings.TrimSpace(value)); !ok {
			return false
		}
		if _, twice := labels[name]; twice {
			p.fail(Labels, "there are two labels "+strconv.Quote(name))
		}
		if labels == nil {
			labels = make(map[string]string)
		}
		labels[name] = value
		return true
	}, "name=value")
	return labels
}

// unquote returns a value, which is a JSON string if it begins with a quotation mark.
func unquote(value string) (string, bool) {
	if !strings.HasPrefix(value, `"`) {
		return value, true
	}
	var text string
	err := json.Unmarshal([]byte(value), &text)
	return text, err == nil
}

// callback returns a callback: a URL, none, or an object as the API has it.
func (p *parser) callback(name string) *client.Callback {
	switch text := p.form[name]; {
	case text == "":
		return nil
	case strings.EqualFold(text, none):
		return client.NoCallback()
	case strings.HasPrefix(text, "{"):
		c, err := parseCallback([]byte(text))
		if err != nil {
			p.fail(name,
				"is not an object such as {\"url\": \"https://shop.example/hook\", \"retries\": 5}: "+err.Error())
			return nil
		}
		return c
	default:
		return &client.Callback{URL: text}
	}
}

// callbackMembers are the members of a callback, as the API has them.
var callbackMembers = []string{"url", "method", "headers", "retries", "timeout", "include"}

// parseCallback parses the object of a callback. Unlike the client, which reads answers of later versions, it refuses
// unknown members: a misspelt one would be lost.
func parseCallback(text []byte) (*client.Callback, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(callbackMembers, name) {
			return nil, fmt.Errorf("it has no member %q, but %s", name, strings.Join(callbackMembers, ", "))
		}
	}
	c := new(client.Callback)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, err
	}
	if c.URL == "" {
		return nil, errors.New("its url is missing; write none for no callback")
	}
	return c, nil
}

func itoa(n int) string { return strconv.Itoa(n) }

// syntaxOffset returns where JSON is wrong.
func syntaxOffset(err error) (int, bool) {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return int(s.Offset), true
	}
	return 0, false
}
