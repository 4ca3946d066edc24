package trypage

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/jobform"
	"github.com/ringback/ringback/console/web"
)

// names are the fields of the form.
var names = []string{jobform.URL, jobform.Topic, jobform.Body, jobform.Delay, jobform.Ladder}

const (
	defaultTopic = "default"
	defaultBody  = `{"hello": "world"}`
	redacted     = "[redacted]"
)

// formValues are the texts of the form.
type formValues struct{ jobform.Form }

// topic returns the topic of the job.
func (f formValues) topic() string {
	if topic := f.Form[jobform.Topic]; topic != "" {
		return topic
	}
	return defaultTopic
}

// fields returns the fields of the form.
func (f formValues) fields(errs web.FormErrors) []web.Field {
	fields := f.Fields("", errs, names...)
	for i := range fields {
		switch field := &fields[i]; field.Name {
		case jobform.URL:
			field.Wide = true
		case jobform.Body:
			field.Rows, field.Hint = 4, "JSON, or else it is sent as text."
		}
	}
	return fields
}

// formOf returns the form as the page shows it first: as the query has it, as the job that was sent, or with the inbox.
func (p *pages) formOf(v *web.Visit, job *client.JobInfo) formValues {
	form := jobform.Form{}
	if job != nil {
		sent, _ := jobform.Of(job)
		if as := sent[jobform.BodyAs]; as != jobform.AsJSON && as != jobform.AsText {
			delete(sent, jobform.Body) // the form sends JSON or text: the base64 of bytes would arrive as it is
		}
		for _, name := range names {
			if sent[name] != redacted {
				form[name] = sent[name]
			}
		}
	} else {
		form[jobform.Body] = defaultBody
		if p.inbox != nil {
			form[jobform.URL] = p.inbox.URL() + "/"
		}
		if len(v.Who.Topics) > 0 {
			form[jobform.Topic] = strings.ReplaceAll(v.Who.Topics[0], "*", "try")
		}
	}
	for _, name := range names {
		if text := v.Query(name); text != "" {
			form[name] = text
		}
	}
	return formValues{form}
}

// send registers the job of the form, and leads to its progress.
func (p *pages) send(v *web.Visit) (web.Answer, error) {
	sent := jobform.Read(v.Request, "")
	form := formValues{jobform.Form{}}
	for _, name := range names {
		form.Form[name] = sent[name]
	}
	if body := form.Form[jobform.Body]; !json.Valid([]byte(body)) {
		form.Form[jobform.BodyAs] = jobform.AsText
	}
	job, errs := form.Job("")
	if errs.Any() {
		return p.page(v, nil, form, errs)
	}
	info, err := v.API.Register(v.Request.Context(), job)
	if err != nil {
		if errs, ok := jobform.ErrorsOf(err, "", ""); ok {
			return p.page(v, nil, form, errs)
		}
		return nil, err
	}
	return &web.Redirect{To: v.PathQuery(v.Path("try"), "job", info.ID)}, nil
}

// readJob returns the job in the query; nil: none is named, or there is no such job.
func readJob(v *web.Visit) (*client.JobInfo, error) {
	id := v.Query("job")
	if id == "" {
		return nil, nil //nolint:nilnil // none is named
	}
	job, err := v.API.Get(v.Request.Context(), id)
	if errors.Is(err, client.ErrNotFound) {
		return nil, nil //nolint:nilnil // the page says so
	}
	return job, err
}
