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
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
)

// names are the fields of the form.
var names = []string{"url", "topic", "body", "body_as", "content_type", "delay", "ladder"}

const (
	defaultTopic = "default"
	defaultBody  = `{"hello": "world"}`
	// sourceField is the hidden field with the id of the job whose body is sent again if the body is kept.
	sourceField = "source"
	// newIDField is the hidden field with the id of the job, so that a form that is sent twice registers one.
	newIDField = "new_id"
)

// formValues are the texts of the form.
type formValues struct {
	form.Texts

	// Source is the id of the job whose body is sent again if it is kept.
	Source string
}

// topic returns the topic of the job.
func (f formValues) topic() string { return cmp.Or(f.Texts["topic"], defaultTopic) }

// fields returns the fields of the form. The kind of the body and its content type are among them only if they are not
// those that the text of the body implies.
func (f formValues) fields(errs web.FormErrors) []web.Field {
	shown := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return (name == "body_as" || name == "content_type") && f.Texts[name] == "" && errs.Of(name) == ""
	})
	fields := form.Job.Fields(f.Texts, errs, shown...)
	for i := range fields {
		switch field := &fields[i]; field.Name {
		case "url":
			field.Wide = true
		case "body":
			field.Rows, field.Hint = 4, "JSON, or else it is sent as text."
			switch f.Texts["body_as"] {
			case "":
			case form.AsKept:
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
	f := formValues{Texts: form.Texts{}}
	if job != nil {
		copied, _ := form.CopyOf(job)
		f.Texts = form.Job.Texts(copied)
		switch f.Texts["body_as"] {
		case implied(f.Texts["body"]):
			delete(f.Texts, "body_as")
		case form.AsKept:
			if !v.Who.Bodies {
				delete(f.Texts, "body_as")
				delete(f.Texts, "content_type")
			}
			f.Source = job.ID
		}
		maps.DeleteFunc(f.Texts, func(name, text string) bool {
			return !slices.Contains(names, name) || text == form.Redacted
		})
	} else {
		f.Texts["body"] = defaultBody
		if p.inbox != nil {
			f.Texts["url"] = p.inbox.URL() + "/"
		}
		if len(v.Who.Topics) > 0 {
			f.Texts["topic"] = strings.ReplaceAll(v.Who.Topics[0], "*", "try")
		}
	}
	for _, name := range names {
		if text := v.Query(name); text != "" {
			f.Texts[name] = text
		}
	}
	return f
}

// implied returns how a body is read of which the form does not say it.
func implied(body string) string {
	if strings.TrimSpace(body) == "" || json.Valid([]byte(body)) {
		return form.AsJSON
	}
	return form.AsText
}

// send registers the job of the form, and leads to its progress.
func (p *pages) send(v *web.Visit) (web.Answer, error) {
	f := formValues{form.Job.Typed(v.Request.PostForm, nil), v.Form(sourceField)}
	maps.DeleteFunc(f.Texts, func(name, _ string) bool { return !slices.Contains(names, name) })
	read := maps.Clone(f.Texts)
	read["body_as"] = cmp.Or(read["body_as"], implied(read["body"]))
	read["id"] = cmp.Or(v.Form(newIDField), client.NewID())
	stored, err := f.stored(v)
	if err != nil {
		return nil, err
	}
	doc, _, errs := form.Job.Document(stored, read)
	if errs.Any() {
		return p.page(v, nil, f, errs)
	}
	register := client.Request{Method: http.MethodPost, Path: "/v1/jobs", Body: doc}
	_, err = v.API.Call(v.Request.Context(), register)
	// the form was changed, and is another job
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Code == "id_taken" {
		read["id"] = client.NewID()
		register.Body, _, _ = form.Job.Document(stored, read)
		_, err = v.API.Call(v.Request.Context(), register)
	}
	if err != nil {
		if errs, ok := web.FormErrorsOf(err, names...); ok {
			return p.page(v, nil, f, errs)
		}
		return nil, err
	}
	return &web.Redirect{To: v.PathQuery(v.Path("try"), "job", read["id"])}, nil
}

// stored returns the body that is sent again, if it is kept.
func (f formValues) stored(v *web.Visit) (form.Values, error) {
	switch {
	case f.Texts["body_as"] != form.AsKept:
		return form.Values{}, nil
	case f.Source == "":
		return nil, &client.Problem{
			Status: http.StatusUnprocessableEntity, Detail: "The form does not name the job whose body is sent again.",
		}
	case !v.Who.Bodies:
		return nil, &client.Problem{
			Status: http.StatusForbidden, Code: "forbidden",
			Detail: "Your token may not read bodies, so that of another job cannot be sent again.",
		}
	}
	source, err := v.API.Get(v.Request.Context(), f.Source)
	if err != nil {
		return nil, err
	}
	return form.Values{"body": form.Job.Values(source.Raw)["body"]}, nil
}

// readJob returns the job in the query; nil: none is named, or there is no such job.
func readJob(v *web.Visit) (*client.JobInfo, error) {
	id := v.Query("job")
	if id == "" {
		return nil, nil // none is named
	}
	job, err := v.API.Get(v.Request.Context(), id)
	if errors.Is(err, client.ErrNotFound) {
		return nil, nil // the page says so
	}
	return job, err
}
