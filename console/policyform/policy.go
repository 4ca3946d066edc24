package policyform

import (
	"slices"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

// redacted is how the API shows a secret. Sent back, it keeps the stored one.
const redacted = "[redacted]"

// Policy is the form of a topic's policy.
var Policy = newPolicyForm()

func newPolicyForm() *Form[client.Policy] {
	f := &Form[client.Policy]{allocate: allocatePolicy, trim: trimPolicy, nulls: policyNulls}
	add := func(title, intro string, fields ...field[client.Policy]) {
		group := Group{Title: title, Intro: intro}
		for i := range fields {
			group.names = append(group.names, fields[i].Name)
		}
		f.groups, f.fields = append(f.groups, group), append(f.fields, fields...)
	}
	add("Retries", "", retryFields()...)
	add("Limits", "", limitFields()...)
	add("Receiver", "", receiverFields()...)
	add("Breaker", "A lane's breaker opens when its receiver fails again and again: its jobs wait then, and spend no "+
		"retries.", breakerFields()...)
	add("Callback when a job is delivered", "",
		callbackFields("on_delivered", func(p *client.Policy) *client.Callback { return p.OnDelivered })...)
	add("Callback when a job is dead", "",
		callbackFields("on_dead", func(p *client.Policy) *client.Callback { return p.OnDead })...)
	add("Callback when jobs pile up",
		"One when a limit is exceeded, and one when the topic is below both again.", backlogFields()...)
	add("Retention",
		"How long ended jobs are kept. The limit that is reached first removes the oldest.", retentionFields()...)
	add("Advanced", "", advancedFields()...)
	f.defaults = f.Render(defaultPolicy())
	return f
}

// defaultPolicy is the default of what does not depend on the store.
func defaultPolicy() client.Policy {
	const m, h = time.Minute, time.Hour
	return client.Policy{
		Ladder:          []time.Duration{15 * time.Second, 3 * m, 10 * m, 30 * m, 30 * m, h, 2 * h, 6 * h, 15 * h},
		Jitter:          new(0.1),
		Timeout:         10 * time.Second,
		Workers:         256,
		LaneConcurrency: 32,
		Deliver:         "push",
		GiveUpOn:        []string{"410"},
		Breaker:         &client.Breaker{Failures: new(10), Open: 30 * time.Second},
		IDWindow:        new(h),
	}
}

func retryFields() []field[client.Policy] {
	type p = client.Policy
	return []field[p]{
		ladderField(web.Field{Name: "ladder", Label: "Ladder", Hint: "Waits after failed attempts, such as 15s, 3m, " +
			"10m. The last one repeats."}, func(s *p) *[]time.Duration { return &s.Ladder }),
		wholeField(web.Field{Name: "retries", Label: "Retries", Hint: "Attempts after the first, 0 to 1000. Empty: " +
			"as many as the ladder has waits."}, func(s *p) **int { return &s.Retries }),
		durationField(web.Field{Name: "timeout", Label: "Timeout", Hint: "Of a whole attempt, 100ms to 10m."},
			func(s *p) *time.Duration { return &s.Timeout }),
		shareField(web.Field{Name: "jitter", Label: "Jitter", Hint: "Lengthens each wait by a random share of up to " +
			"this much, 0 to 1."}, func(s *p) **float64 { return &s.Jitter }),
		durationField(web.Field{Name: "max_age", Label: "Largest age", Hint: "A job that was due so long ago dies. " +
			"Empty: the waits of its ladder and 24h."}, func(s *p) *time.Duration { return &s.MaxAge }),
		listOrNoneField(web.Field{Name: "give_up_on", Label: "Give up on", Hint: "Statuses that end a job at once, " +
			"such as 410, 4xx; or none."}, func(s *p) *[]string { return &s.GiveUpOn }),
	}
}

func limitFields() []field[client.Policy] {
	type p = client.Policy
	return []field[p]{
		positiveField(web.Field{Name: "lane_concurrency", Label: "Attempts at a time per " +
			"lane", Hint: "Over all processes, 1 to 10000."}, func(s *p) *int { return &s.LaneConcurrency }),
		positiveField(web.Field{Name: "workers", Label: "Attempts at a time per " +
			"process", Hint: "Of all lanes of the topic, 1 to 10000."}, func(s *p) *int { return &s.Workers }),
		textField(web.Field{
			Name: "rate", Label: "Rate of the topic", Placeholder: "none",
			Hint: "Starts of attempts, such as 100/s or 5/90s.",
		}, func(s *p) *string { return &s.Rate }),
		textField(web.Field{Name: "lane_rate", Label: "Rate of each lane", Placeholder: "none", Hint: "Such as 5/s."},
			func(s *p) *string { return &s.LaneRate }),
		yesField(web.Field{Name: "ordered", Label: "Ordered", Hint: "Each lane delivers its jobs one at a time, in " +
			"the order of their registration."}, "no", func(s *p) **bool { return &s.Ordered }),
	}
}

func receiverFields() []field[client.Policy] {
	type p = client.Policy
	deliver := web.Field{Name: "deliver", Label: "Jobs are", Kind: "select", Options: []web.Link{
		{To: "", Text: "default"},
		{To: "push", Text: "sent as HTTP requests"},
		{To: "pull", Text: "leased to clients that ask for them"},
		{To: "handler", Text: "passed to a Go function"},
	}}
	return []field[p]{
		textField(deliver, func(s *p) *string { return &s.Deliver }),
		textField(web.Field{Name: "url", Label: "URL", Placeholder: "none", Hint: "For jobs that have none."},
			func(s *p) *string { return &s.URL }),
		headersField(web.Field{Name: "headers", Label: "Headers", Hint: headersHint},
			func(s *p) *client.Headers { return &s.Headers }),
		listField(web.Field{Name: "success.status", Label: "Statuses that count as " +
			"delivered", Hint: "Such as 200, 2xx. Empty: 2xx."}, func(s *p) *[]string { return &s.Success.Status }),
		linesField(web.Field{Name: "success.body_equals", Label: "and whose body is", Hint: "Exactly this text. " +
			"Empty: any.", Rows: 1}, func(s *p) *string { return &s.Success.BodyEquals }),
		linesField(web.Field{Name: "success.body_contains", Label: "or contains", Rows: 1},
			func(s *p) *string { return &s.Success.BodyContains }),
	}
}

const headersHint = "One in a line, such as X-Team: shop. Leave [redacted] as it is to keep a secret."

func breakerFields() []field[client.Policy] {
	type p = client.Policy
	return []field[p]{
		wholeField(web.Field{Name: "breaker.failures", Label: "Opens after failures in a row", Hint: "0: never."},
			func(s *p) **int { return &s.Breaker.Failures }),
		durationField(web.Field{Name: "breaker.open", Label: "Stays open for", Hint: "1s to 1h; then one attempt " +
			"decides."}, func(s *p) *time.Duration { return &s.Breaker.Open }),
	}
}

func callbackFields(object string, at func(*client.Policy) *client.Callback) []field[client.Policy] {
	type p = client.Policy
	name := func(member, label, hint string) web.Field {
		return web.Field{Name: object + "." + member, Label: label, Hint: hint}
	}
	return []field[p]{
		callbackURLField(name("url", "URL", "For jobs that name no callback. Empty: none."),
			func(s *p) *string { return &at(s).URL }),
		callbackMethodField(name("method", "Method", "Empty: POST."), func(s *p) *string { return &at(s).Method }),
		headersField(name("headers", "Headers", headersHint), func(s *p) *client.Headers { return &at(s).Headers }),
		wholeField(name("retries", "Retries", "Empty: those of the topic _callbacks."),
			func(s *p) **int { return &at(s).Retries }),
		durationField(name("timeout", "Timeout", "Empty: that of the topic _callbacks."),
			func(s *p) *time.Duration { return &at(s).Timeout }),
		listField(name("include", "Includes", "Of the job: body, headers, query."),
			func(s *p) *[]string { return &at(s).Include }),
	}
}

// callbackURLField is the URL of a callback, without which there is none.
func callbackURLField(f web.Field, at func(*client.Policy) *string) field[client.Policy] {
	made := textField(f, at)
	made.essential = true
	return made
}

// callbackMethodField is the method of a callback. The API shows one that is not set as POST.
func callbackMethodField(f web.Field, at func(*client.Policy) *string) field[client.Policy] {
	made := textField(f, at)
	shown := made.get
	made.get = func(s *client.Policy) string {
		if text := shown(s); text != "POST" {
			return text
		}
		return ""
	}
	return made
}

func backlogFields() []field[client.Policy] {
	type p = client.Policy
	return []field[p]{
		durationField(web.Field{Name: "on_backlog.older_than", Label: "A job has been due for longer " +
			"than", Hint: "Such as 10m."}, func(s *p) *time.Duration { return &s.OnBacklog.OlderThan }),
		positiveField(web.Field{Name: "on_backlog.more_than", Label: "More jobs are unfinished " +
			"than", Hint: "Such as 10000."}, func(s *p) *int64 { return &s.OnBacklog.MoreThan }),
		callbackURLField(web.Field{Name: "on_backlog.url", Label: "URL", Hint: "Empty: no callback."},
			func(s *p) *string { return &s.OnBacklog.URL }),
		callbackMethodField(web.Field{Name: "on_backlog.method", Label: "Method", Hint: "Empty: POST."},
			func(s *p) *string { return &s.OnBacklog.Method }),
		headersField(web.Field{Name: "on_backlog.headers", Label: "Headers", Hint: headersHint},
			func(s *p) *client.Headers { return &s.OnBacklog.Headers }),
		wholeField(web.Field{Name: "on_backlog.retries", Label: "Retries"},
			func(s *p) **int { return &s.OnBacklog.Retries }),
		durationField(web.Field{Name: "on_backlog.timeout", Label: "Timeout"},
			func(s *p) *time.Duration { return &s.OnBacklog.Timeout }),
		listField(web.Field{Name: "on_backlog.include", Label: "Includes"},
			func(s *p) *[]string { return &s.OnBacklog.Include }),
	}
}

func retentionFields() []field[client.Policy] {
	type p = client.Policy
	of := func(object, jobs string, at func(*p) *client.Retention) []field[p] {
		return []field[p]{
			durationOrZeroField(web.Field{Name: object + ".for", Label: jobs +
				" are kept for", Hint: "Such as 24h or 7d."}, func(s *p) **time.Duration { return &at(s).For }),
			wholeField(web.Field{Name: object + ".max", Label: "at most so many"},
				func(s *p) **int64 { return &at(s).Max }),
			textField(web.Field{Name: object + ".max_bytes", Label: "of at most", Hint: "Such as 256MiB."},
				func(s *p) *string { return &at(s).MaxBytes }),
		}
	}
	return slices.Concat(
		of("keep_delivered", "Delivered and cancelled jobs", func(s *p) *client.Retention { return s.KeepDelivered }),
		of("keep_dead", "Dead jobs", func(s *p) *client.Retention { return s.KeepDead }),
		[]field[p]{durationOrZeroField(web.Field{
			Name: "id_window", Label: "Ids of ended jobs are remembered for",
			Hint: "Up to 365d: a job is not registered twice under its id meanwhile. 0: not at all.",
		},
			func(s *p) **time.Duration { return &s.IDWindow })},
	)
}

func advancedFields() []field[client.Policy] {
	type p = client.Policy
	key := linesField(web.Field{Name: "client_cert.key", Label: "Key of the client " +
		"certificate", Hint: "In PEM. It is never shown. Empty: the stored one stays.", Rows: 3},
		func(s *p) *string { return &s.ClientCert.Key })
	key.secret = true
	shown := key.get
	key.get = func(s *p) string {
		if text := shown(s); text != redacted {
			return text
		}
		return ""
	}
	return []field[p]{
		linesField(web.Field{Name: "client_cert.chain", Label: "Client certificate for TLS", Hint: "In PEM, the leaf " +
			"first. Empty: none.", Rows: 3}, func(s *p) *string { return &s.ClientCert.Chain }),
		key,
		textField(web.Field{Name: "managed_by", Label: "Managed by", Hint: "The files that set this policy: ringback " +
			"apply writes it. Empty: none."}, func(s *p) *string { return &s.ManagedBy }),
	}
}

// copyOf returns a copy of an object, or a new one.
func copyOf[T any](v *T) *T {
	var c T
	if v != nil {
		c = *v
	}
	return &c
}

// allocatePolicy returns a copy with all objects.
func allocatePolicy(p client.Policy) client.Policy {
	p.Success, p.Breaker = copyOf(p.Success), copyOf(p.Breaker)
	p.OnDelivered, p.OnDead, p.OnBacklog = copyOf(p.OnDelivered), copyOf(p.OnDead), copyOf(p.OnBacklog)
	p.ClientCert = copyOf(p.ClientCert)
	p.KeepDelivered, p.KeepDead = copyOf(p.KeepDelivered), copyOf(p.KeepDead)
	return p
}

// trimPolicy removes objects without members.
func trimPolicy(p *client.Policy) {
	if s := p.Success; len(s.Status) == 0 && s.BodyEquals == "" && s.BodyContains == "" && len(s.Null) == 0 {
		p.Success = nil
	}
	if *p.ClientCert == (client.Certificate{}) {
		p.ClientCert = nil
	}
	trim(&p.Breaker, p.Breaker.Failures == nil && p.Breaker.Open == 0)
	trim(&p.OnDelivered, isNoCallback(p.OnDelivered))
	trim(&p.OnDead, isNoCallback(p.OnDead))
	b := p.OnBacklog
	trim(&p.OnBacklog, b.OlderThan == 0 && b.MoreThan == 0 && isNoCallback(&client.Callback{
		URL: b.URL, Method: b.Method, Headers: b.Headers, Retries: b.Retries, Timeout: b.Timeout, Include: b.Include,
	}))
	trim(&p.KeepDelivered, isNoRetention(p.KeepDelivered))
	trim(&p.KeepDead, isNoRetention(p.KeepDead))
}

func trim[T any](at **T, empty bool) {
	if empty {
		*at = nil
	}
}

func isNoCallback(c *client.Callback) bool {
	return c.URL == "" && c.Method == "" && c.Headers == nil && c.Retries == nil && c.Timeout == 0 && c.Include == nil
}

func isNoRetention(r *client.Retention) bool { return r.For == nil && r.Max == nil && r.MaxBytes == "" }

// policyNulls returns the names of the members of an object that get their default; nil: those of the object cannot be
// left out.
func policyNulls(p *client.Policy, object string) *[]string {
	switch object {
	case "":
		return &p.Null
	case "success":
		p.Success = orNew(p.Success)
		return &p.Success.Null
	case "breaker":
		p.Breaker = orNew(p.Breaker)
		return &p.Breaker.Null
	case "on_delivered":
		p.OnDelivered = orNew(p.OnDelivered)
		return &p.OnDelivered.Null
	case "on_dead":
		p.OnDead = orNew(p.OnDead)
		return &p.OnDead.Null
	case "on_backlog":
		p.OnBacklog = orNew(p.OnBacklog)
		return &p.OnBacklog.Null
	case "keep_delivered":
		p.KeepDelivered = orNew(p.KeepDelivered)
		return &p.KeepDelivered.Null
	case "keep_dead":
		p.KeepDead = orNew(p.KeepDead)
		return &p.KeepDead.Null
	}
	return nil
}

// orNew returns v, or a new value if it is nil.
func orNew[T any](v *T) *T {
	if v == nil {
		return new(T)
	}
	return v
}

// Apply returns an effective policy as it would be with what was typed over the policy that is set.
func Apply(effective, set client.Policy, typed Values) (client.Policy, web.FormErrors) {
	applied, errs := Policy.Apply(effective, set, typed)
	if text, sent := typed["retries"]; sent && text == "" || !sent && set.Retries == nil {
		applied.Retries = nil // as many as the ladder has waits
	}
	return applied, errs
}

// Defaults returns the policy of a topic without settings, but for what depends on the store.
func Defaults() client.Policy { return defaultPolicy() }
