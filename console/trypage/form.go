package trypage

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/jobform"
	"github.com/ringback/ringback/console/web"
)

// names are the fields of the form.
var names = []string{
	jobform.URL, jobform.Topic, jobform.Body, jobform.BodyAs, jobform.ContentType,
	jobform.Delay, jobform.Ladder,
}

const (
	defaultTopic = "default"
	defaultBody  = `{"hello": "world"}`
	redacted     = "[redacted]"
	// sourceField is the hidden field with the id of the job whose body is sent again if the body is AsKept.
	sourceField = "source"
	// newIDField is the hidden field with the id of the job, so that a form that is sent twice registers one.
	newIDField = "new_id"
)

// formValues are the texts of the form.
type formValues struct {
	jobform.Form

	// Source is the id of the job whose body AsKept stands for.
	Source string
}

// topic returns the topic of the job.
func (f formValues) topic() string {
	if topic := f.Form[jobform.Topic]; topic != "" {
		return topic
	}
	return defaultTopic
}

// fields returns the fields of the form. The kind of the body and its content type are among them only if they are not
// those that the text of the body implies.
func (f formValues) fields(errs web.FormErrors) []web.Field {
	shown := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return (name == jobform.BodyAs || name == jobform.ContentType) && f.Form[name] == "" && errs.Of(name) == ""
	})
	fields := f.Fields("", errs, shown...)
	for i := range fields {
		switch field := &fields[i]; field.Name {
		case jobform.URL:
			field.Wide = true
		case jobform.Body:
			field.Rows, field.Hint = 4, "JSON, or else it is sent as text."
			switch f.Form[jobform.BodyAs] {
			case "":
			case jobform.AsKept:
				field.Hint = "Empty: that of job " + f.Source + ", which cannot be edited here. Or choose what kind " +
					"of body you write."
			default:
				field.Hint = "Sent as what is chosen below."
			}
		}
	}
	return fields
}

// formOf returns the form as the page shows it first: as the query has it, as the job that was sent, or with the inbox.
func (p *pages) formOf(v *web.Visit, job *client.JobInfo) formValues {
	form, source := jobform.Form{}, ""
	if job != nil {
		sent, _ := jobform.Of(job)
		switch sent[jobform.BodyAs] {
		case implied(sent[jobform.Body]):
			delete(sent, jobform.BodyAs)
		case jobform.AsKept:
			if len(job.Body) == 0 || !v.Who.Bodies {
				delete(sent, jobform.BodyAs)
			}
			source = job.ID
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
	return formValues{form, source}
}

// implied returns how a body is read of which the form does not say it.
func implied(body string) string {
	if body == "" || json.Valid([]byte(body)) {
		return jobform.AsJSON
	}
	return jobform.AsText
}

// send registers the job of the form, and leads to its progress.
func (p *pages) send(v *web.Visit) (web.Answer, error) {
	sent := jobform.Read(v.Request, "")
	form := formValues{jobform.Form{}, v.Form(sourceField)}
	for _, name := range names {
		form.Form[name] = sent[name]
	}
	read := maps.Clone(form.Form)
	if read[jobform.BodyAs] == "" {
		read[jobform.BodyAs] = implied(read[jobform.Body])
	}
	job, errs := read.Job("")
	if read[jobform.BodyAs] == jobform.AsKept && form.Source == "" {
		errs.Add(jobform.BodyAs, "is required: no job is named whose body is sent again")
	}
	if errs.Any() {
		return p.page(v, nil, form, errs)
	}
	if read[jobform.BodyAs] == jobform.AsKept {
		source, err := v.API.Get(v.Request.Context(), form.Source)
		if err != nil {
			return nil, err
		}
		if !v.Who.Bodies {
			return nil, &client.Problem{
				Status: http.StatusForbidden, Code: "forbidden",
				Detail: "Your token may not read bodies, so that of another job cannot be sent again.",
			}
		}
		job.Body, job.ContentType = source.Body, cmp.Or(job.ContentType, source.ContentType)
	}
	job.ID = v.Form(newIDField)
	info, err := v.API.Register(v.Request.Context(), job)
	// the form was changed, and is another job
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Code == "id_taken" {
		job.ID = client.NewID()
		info, err = v.API.Register(v.Request.Context(), job)
	}
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
