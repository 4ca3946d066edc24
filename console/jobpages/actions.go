package jobpages

import (
	"context"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/jobform"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
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
		return &web.Redirect{To: v.Path("jobs", id), Notice: web.Done(done)}, nil
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

// reviveJob serves the form that sends a job again.
func reviveJob(v *web.Visit) (web.Answer, error) {
	id := v.PathValue("id")
	form := jobform.Read(v.Request, "")
	wanted, errs := form.Job("")
	seen, err := v.Condition()
	if !errs.Any() {
		if err == nil {
			_, err = v.API.Revive(v.Request.Context(), id,
				client.Revival{Delay: wanted.Delay, ExpiresIn: wanted.ExpiresIn}, seen)
		}
		if err == nil {
			when := "now"
			if wanted.Delay > 0 {
				when = "in " + words.Duration(wanted.Delay)
			}
			return &web.Redirect{To: v.Path("jobs", id), Notice: web.Done("Job " + id + " is revived, and due " + when +
				".")}, nil
		}
	}
	answer, err := reviveFailed(v, id, form, errs, err)
	return answer, err
}

// reviveFailed shows the page of a job with the form that was not right.
func reviveFailed(v *web.Visit, id string, form jobform.Form, errs web.FormErrors, err error) (web.Answer, error) {
	status := errs.Status
	if err != nil {
		answer, err := failed(v, id, "The job was not revived", err)
		if page, ok := answer.(*web.Page); ok {
			if d, ok := page.Data.(*jobData); ok {
				d.setRevive(form)
			}
		}
		return answer, err
	}
	j, err := getJob(v, id)
	if err != nil {
		return nil, err
	}
	d := newJobData(v, j)
	d.Failed, d.Errors = "The job was not revived: a field is wrong.", errs
	d.setRevive(form)
	return jobPage(v, d, status), nil
}
