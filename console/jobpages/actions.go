package jobpages

import (
	"context"
	"net/http"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
)

// act serves a form that changes a job as the reader saw it. done is what the notice says when it is done, failure what
// it says when it is not.
func act(failure string, change func(
	ctx context.Context, v *web.Visit, id string, seen client.Condition,
) (done string, err error),
) web.Serve {
	return func(v *web.Visit) (web.Answer, error) {
		id := v.PathValue("id")
		seen, err := v.Condition()
		done := ""
		if err == nil {
			done, err = change(v.Request.Context(), v, id, seen)
		}
		if err != nil {
			return failed(v, id, failure, err)
		}
		return web.Done(v.Path("jobs", id), done), nil
	}
}

func runJob(ctx context.Context, v *web.Visit, id string, seen client.Condition) (string, error) {
	_, err := v.API.Run(ctx, id, seen)
	return "Job " + id + " is due now.", err
}

func cancelJob(ctx context.Context, v *web.Visit, id string, seen client.Condition) (string, error) {
	j, err := v.API.Cancel(ctx, id, seen)
	if err == nil && j.CancelRequested && !j.State.Ended() {
		return "Job " + id + " is cancelled as soon as its attempt has ended, unless that succeeds.", nil
	}
	return "Job " + id + " is cancelled.", err
}

// reviveForm is the form that sends a job again.
var reviveForm = form.Of[client.Revival](form.Group{Fields: form.JobFields("", "delay", "expires_in")})

// reviveJob serves the form that sends a job again.
func reviveJob(v *web.Visit) (web.Answer, error) {
	id := v.PathValue("id")
	texts := reviveForm.Typed(v.Request.PostForm, nil)
	doc, _, _ := reviveForm.Document(nil, texts)
	err := send(v, http.MethodPost, id, "/revive", doc)
	if err == nil {
		when := "now"
		if texts["delay"] != "" {
			when = "in " + texts["delay"]
		}
		return web.Done(v.Path("jobs", id), "Job "+id+" is revived, and due "+when+"."), nil
	}
	errs, _ := web.FormErrorsOf(err, reviveForm.Names()...)
	answer, err := failed(v, id, "The job was not revived", err)
	if page, ok := answer.(*web.Page); ok {
		if d, ok := page.Data.(*jobData); ok {
			d.setRevive(texts, errs)
		}
	}
	return answer, err
}
