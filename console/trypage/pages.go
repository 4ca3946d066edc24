// Package trypage has the console's page Try it: a form that sends a test job, its progress, and beside it the inbox of
// ringback dev.
package trypage

import (
	"embed"
	"errors"
	"net/http"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/inbox"
	"github.com/ringback/ringback/job"
)

//go:embed templates
var files embed.FS

// section is the item of the navigation.
const section = "try"

// Inbox is a receiver in the same process.
type Inbox interface {
	// URL is where jobs reach it, without a slash at the end.
	URL() string
	// Recent returns its newest requests, the newest first.
	Recent() []inbox.Request
	// AddKey makes it verify signatures with a key, until it ends.
	AddKey(text string) error
}

// pages is the state of the page.
type pages struct{ inbox Inbox }

// New returns the page. The inbox is nil if there is none.
func New(in Inbox) web.Pages {
	p := &pages{inbox: in}
	routes := []web.Route{
		web.Get("try", access.RegisterJob, p.show),
		web.PostJob("try", access.RegisterJob, p.send),
	}
	if in != nil {
		routes = append(routes, web.Post("try/sign", access.AddSecret, p.sign))
	}
	return web.Pages{Name: "trypage", Files: files, Routes: routes}
}

// data is the data of the view try.
type data struct {
	Lead, Class string
	Fields      []web.Field
	Source      string // the id of the job whose body is sent again; empty: none
	NewID       string // the id that the job gets
	Errors      web.FormErrors
	Presets     []preset
	Job         *progress // nil: none was sent
	// HasInbox reports whether there is an inbox, SeesInbox whether the reader may see it.
	HasInbox, SeesInbox bool
	InboxURL            string
	Requests            []request
	Sign                *signing // nil: nothing is offered
}

// preset fills the form.
type preset struct {
	web.Link

	What string
}

// signing is the offer to sign the requests of a topic.
type signing struct {
	Topic, Job string
	Has        bool // it has a secret
}

// show shows the page: before a job is sent, or about the one in the query.
func (p *pages) show(v *web.Visit) (web.Answer, error) {
	job, err := readJob(v)
	if err != nil {
		return nil, err
	}
	return p.page(v, job, p.formOf(v, job), web.FormErrors{})
}

// page returns the page. job is nil if none was sent.
func (p *pages) page(v *web.Visit, job *client.JobInfo, form formValues, errs web.FormErrors) (web.Answer, error) {
	errs.Heading = "The job was not sent"
	d := data{Lead: "Send a job and watch it arrive.", Errors: errs}
	if job != nil {
		d.Job = newProgress(v, job)
		d.Lead, d.Class = leadOf(job, v.Now)
	} else if v.Query("job") != "" {
		d.Lead, d.Class = "There is no such job any more: send another one.", "warn"
	}
	if p.inbox != nil {
		d.HasInbox, d.SeesInbox, d.InboxURL = true, seesInbox(v), p.inbox.URL()
		d.Presets = p.presets(v, form.Texts["topic"])
	}
	if d.SeesInbox {
		d.Requests = requestsOf(p.inbox.Recent(), job)
	}
	if !v.Live {
		d.Fields, d.Source, d.NewID = form.fields(errs), form.Source, client.NewID()
		var err error
		// what was typed is worth more than the offer
		if d.Sign, err = p.signing(v, job, form.topic()); err != nil && !errs.Any() {
			return nil, err
		}
	}
	return &web.Page{View: "try", Title: "Try it", Section: section, Status: errs.Status, Data: d}, nil
}

// seesInbox reports whether the reader may see what arrives at the inbox. It receives the bodies of all topics and
// namespaces, which the root alone may read.
func seesInbox(v *web.Visit) bool { return v.Who.Root && v.Who.Bodies }

// presets are receivers to try: paths of the inbox. They fill in the form anew, but for the topic.
func (p *pages) presets(v *web.Visit, topic string) []preset {
	link := func(path, ladder string) string {
		return v.PathQuery(v.Path("try"), "url", p.inbox.URL()+path, "ladder", ladder, "topic", topic)
	}
	return []preset{
		{web.Link{To: link("/", ""), Text: "answers 200"}, "is delivered at once"},
		{web.Link{To: link("/flaky", "1s, 2s"), Text: "fails twice, then answers"}, "is delivered on attempt 3"},
		{web.Link{To: link("/status/503", "2s, 4s"), Text: "is down"}, "is dead after 3 attempts"},
		{web.Link{To: link("/slow/5s", ""), Text: "is slow"}, "is delivered after 5s"},
	}
}

// signing returns the offer to sign the requests of the topic that the page is about.
func (p *pages) signing(v *web.Visit, job *client.JobInfo, topic string) (*signing, error) {
	if p.inbox == nil || !seesInbox(v) || !isTopic(topic) || !v.CanTopic(access.AddSecret, topic) {
		return nil, nil // nothing is offered
	}
	s := &signing{Topic: topic}
	if job != nil {
		s.Job = job.ID
	}
	secrets, err := v.API.SecretsPage(v.Request.Context(), topic, "", client.PageOptions{Limit: 1})
	if errors.Is(err, client.ErrNotFound) { // the topic begins with its secret
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.Has = len(secrets.Items) > 0
	return s, nil
}

// isTopic reports whether a topic can have a name. Paths of the API with . or .. lead elsewhere.
func isTopic(name string) bool { return job.IsTopic(name) && name != "." && name != ".." }

// sign adds a secret to a topic, and gives it to the inbox.
func (p *pages) sign(v *web.Visit) (web.Answer, error) {
	if !seesInbox(v) {
		return nil, &client.Problem{
			Status: http.StatusForbidden, Code: "forbidden",
			Detail: "The inbox is the root's: add secrets on the page of the topic.",
		}
	}
	topic := v.Form("topic")
	to := v.PathQuery(v.Path("try"), "job", v.Form("job"), "topic", topic)
	if !isTopic(topic) {
		return notSigned(to, "no topic can have this name"), nil
	}
	secret, err := v.API.AddSecret(v.Request.Context(), topic, "", client.NewSecret{})
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status != http.StatusUnauthorized &&
		problem.Status < 500 {
		return notSigned(to, problem.Detail), nil
	}
	if err != nil {
		return nil, err
	}
	signed := "Requests of the topic " + topic + " are signed from now on, "
	answer := web.Done(to, signed+"and the inbox verifies them until it ends. Copy the secret if another receiver "+
		"shall verify them, too: it is shown only here.")
	if err := p.inbox.AddKey(secret.Secret); err != nil {
		answer = web.Warn(to, signed+"but the inbox cannot verify them: "+err.Error()+".")
	}
	answer.Notice.Secret = secret.Secret
	return answer, nil
}

// notSigned says why the requests of a topic are not signed.
func notSigned(to, why string) *web.Redirect {
	return &web.Redirect{To: to, Notice: web.Notice{
		Kind: "bad", Text: words.Sentence("The requests of this topic are not signed:", why),
	}}
}
