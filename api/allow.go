package api

import (
	"cmp"
	"context"
	"errors"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
)

// checkTopic refuses a topic that the request's token may not use. Empty: all topics.
func checkTopic(ctx context.Context, topic string) error {
	p := request.PrincipalOf(ctx)
	switch {
	case len(p.Topics) == 0:
		return nil
	case topic == "":
		return response.NewProblem(response.Forbidden, "a topic is required, because "+restriction(p))
	case !p.Topics.Match(topic):
		return response.NewProblem(response.Forbidden, "the topic is not allowed: "+restriction(p))
	}
	return nil
}

// admit sets the namespace and the client of a registration, and refuses a topic, a body or callbacks that the
// request's token may not use. The payload of a callback has the receiver's answer, which a token that may not read
// bodies does not see.
func admit(ctx context.Context, n *job.New) error {
	p := request.PrincipalOf(ctx)
	n.Namespace, n.CreatedBy = p.Namespace, p.Actor
	if err := checkTopic(ctx, cmp.Or(n.Topic, job.DefaultTopic)); err != nil {
		return err
	}
	if !p.Bodies && (n.OnDelivered.Or(nil) != nil || n.OnDead.Or(nil) != nil) {
		return response.NewProblem(response.Forbidden, "this token may not read bodies, so its jobs cannot have "+
			"callbacks of their own, "+
			"which contain the receiver's answer: leave out on_delivered and on_dead")
	}
	return checkPlaceholder(ctx, &n.Spec)
}

// restriction names the topics of a restricted token.
func restriction(p *access.Principal) string {
	return "the token is restricted to the topics " + p.Topics.String()
}

// admitTemplate refuses what each tick of a schedule registers, for its topic or its body.
func admitTemplate(ctx context.Context, spec *job.Spec) error {
	if err := checkTopic(ctx, cmp.Or(spec.Topic, job.DefaultTopic)); err != nil {
		return err
	}
	err := checkPlaceholder(ctx, spec)
	if p, ok := errors.AsType[*response.Problem](err); ok {
		for i := range p.Fields {
			p.Fields[i].Field = "/job" + p.Fields[i].Field
		}
	}
	return err
}

// checkBodies refuses a change of jobs by a token that may not read bodies, if it sends them to another URL, or
// contains the placeholder that the token got instead.
func checkBodies(ctx context.Context, url string, edit *job.Edit) error {
	if request.PrincipalOf(ctx).Bodies {
		return nil
	}
	if edit == nil {
		edit = &job.Edit{}
	}
	if url != "" || edit.Spec.URL != "" {
		return response.NewProblem(response.Forbidden,
			"this token may not read bodies, so it cannot send those of jobs to another URL: leave out url")
	}
	return checkPlaceholder(ctx, &edit.Spec)
}

// checkPlaceholder refuses a body that is the placeholder of bodies, from a token that may not read them.
func checkPlaceholder(ctx context.Context, spec *job.Spec) error {
	if spec.BodyKind != job.BodyText || string(spec.Body) != response.Redacted || request.PrincipalOf(ctx).Bodies {
		return nil
	}
	return response.Invalid(job.FieldError{
		Field: "/body_text", Detail: "is the placeholder of a body that this token may not read: send the body itself",
	})
}
