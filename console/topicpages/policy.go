package topicpages

import (
	"errors"
	"html/template"
	"maps"
	"net/http"
	"time"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/chart"
	"github.com/ringback/ringback/console/policyform"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// policyPage is the data of the form of a policy.
type policyPage struct {
	Topic string
	Tabs  []tab
	Lead  lead
	// Revision is that of the policy that the form shows; Exists reports whether there is a topic.
	Revision  int64
	Exists    bool
	ManagedBy string
	Changed   lastChange
	Errors    web.FormErrors
	Groups    []policyform.Group
	Preview   preview
	CanChange bool
	PostTo    string
	PreviewTo string
}

// preview says what a policy does.
type preview struct {
	Sentences []string
	Ladder    template.HTML
	// Invalid are fields that cannot be read yet.
	Invalid web.FormErrors
}

func newPreview(p client.Policy, errs web.FormErrors) preview {
	return preview{policyform.Sentences(p), chart.Ladder(p.Ladder, policyform.Retries(p), p.Timeout), errs}
}

// policies are the settings of a topic, and what holds with the defaults.
type policies struct {
	set, effective client.Topic
	exists         bool
}

// readPolicies reads the policy of a topic. A topic that does not exist has none, and what holds is not known.
func readPolicies(v *web.Visit, topic string) (p policies, err error) {
	ctx := v.Request.Context()
	set, err := v.API.GetTopicSettings(ctx, topic)
	if errors.Is(err, client.ErrNotFound) {
		p.effective.Policy = policyform.Defaults()
		return p, nil
	}
	if err != nil {
		return p, err
	}
	effective, err := v.API.GetTopic(ctx, topic)
	if err != nil {
		return p, err
	}
	return policies{*set, *effective, true}, nil
}

// showPolicy answers with the form of a policy.
func showPolicy(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	p, err := readPolicies(v, o.Topic)
	if err != nil {
		return nil, err
	}
	return policyAnswer(v, p, policyform.Policy.Render(p.set.Policy), web.FormErrors{}), nil
}

// policyAnswer is the form with texts in its fields.
func policyAnswer(v *web.Visit, p policies, values policyform.Values, errs web.FormErrors) *web.Page {
	o := ownerOf(v)
	applied, _ := policyform.Apply(p.effective.Policy, p.set.Policy, values)
	data := policyPage{
		Topic: o.Topic, Tabs: o.tabs(v, "policy"), Revision: p.set.Revision, Exists: p.exists,
		ManagedBy: p.set.ManagedBy, Errors: errs, Changed: lastChange{p.set.UpdatedBy, p.set.UpdatedAt},
		Groups:  policyform.Policy.Groups(p.set.Policy, p.effective.Policy, values, errs),
		Preview: newPreview(applied, web.FormErrors{}), CanChange: v.CanTopic(access.ChangeTopic, o.Topic),
		PostTo: o.path(v, "policy"), PreviewTo: o.path(v, "policy", "preview"),
	}
	_, changed, _ := policyform.Policy.Change(client.Policy{}, policyform.Policy.Render(p.set.Policy))
	switch {
	case !p.exists:
		data.Lead = lead{Text: words.Sentence("There is no topic", o.Topic, "yet: saving creates it")}
	case len(changed) == 0:
		data.Lead = lead{Text: words.Sentence("Topic", o.Topic, "has the default policy: nothing is set")}
	default:
		data.Lead = lead{Text: words.Sentence("Topic", o.Topic, "sets", words.Count(int64(len(changed)), "field")+
			":", words.List(changed))}
	}
	return &web.Page{
		View: "topic-policy", Title: "Policy of " + o.Topic, Section: section, Crumbs: o.crumbs(v, true),
		Data: data, Status: errs.Status,
	}
}

// typedPolicy returns the texts of a form that was sent; fields that it lacks are as they are set.
func typedPolicy(v *web.Visit, p policies) policyform.Values {
	values := policyform.Policy.Render(p.set.Policy)
	maps.Copy(values, policyform.Policy.Typed(v.Request.PostForm))
	return values
}

// previewPolicy says what the policy that is typed would do: a part of the form for scripts, else the form.
func previewPolicy(v *web.Visit) (web.Answer, error) {
	p, err := readPolicies(v, ownerOf(v).Topic)
	if err != nil {
		return nil, err
	}
	values := typedPolicy(v, p)
	applied, errs := policyform.Apply(p.effective.Policy, p.set.Policy, values)
	if v.Request.Header.Get("HX-Request") != "" {
		return &web.Part{View: "topic-policy", Template: "policy-preview", Data: newPreview(applied, errs)}, nil
	}
	condition, err := v.Condition()
	if err != nil {
		return nil, err
	}
	if condition != web.IfRevision(p.set.Revision) {
		return policyConflict(v, p), nil
	}
	return policyAnswer(v, p, values, errs), nil
}

// policyConflict answers a form that showed another policy than the one that is set.
func policyConflict(v *web.Visit, p policies) *web.Page {
	values := typedPolicy(v, p)
	_, changed, errs := policyform.Policy.Change(p.set.Policy, values)
	by := lastChange{p.set.UpdatedBy, p.set.UpdatedAt}
	return policyAnswer(v, p, values, changedMeanwhile(by, p.set.ManagedBy, changed, errs, v.Now))
}

// changePolicy changes the fields of a policy that were typed, if it is still as the form showed it.
func changePolicy(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	p, err := readPolicies(v, o.Topic)
	if err != nil {
		return nil, err
	}
	values := typedPolicy(v, p)
	change, changed, errs := policyform.Policy.Change(p.set.Policy, values)
	if len(changed) == 0 && !errs.Any() && p.exists {
		return &web.Redirect{To: o.path(v,
			"policy"), Notice: web.Notice{Kind: "warn", Text: "Nothing was changed: the policy is already so."}}, nil
	}
	condition, err := v.Condition()
	switch {
	case err != nil:
		return nil, err
	case condition != web.IfRevision(p.set.Revision):
		return policyConflict(v, p), nil
	case errs.Any():
		return policyAnswer(v, p, values, errs), nil
	case p.exists:
		_, err = v.API.PatchTopic(v.Request.Context(), o.Topic, change, condition)
	default:
		_, err = v.API.PutTopic(v.Request.Context(), o.Topic, change, condition)
	}
	if errors.Is(err, client.ErrRevision) { // since it was read
		if p, err = readPolicies(v, o.Topic); err != nil {
			return nil, err
		}
		return policyConflict(v, p), nil
	}
	if err != nil {
		return formProblem(v, err, func(v *web.Visit, errs web.FormErrors) (web.Answer, error) {
			return policyAnswer(v, p, values, errs), nil
		}, policyform.Policy.Names()...)
	}
	text := words.Sentence("Topic", o.Topic, "is changed:", words.List(changed))
	if len(changed) == 0 {
		text = words.Sentence("Topic", o.Topic, "is created, with the default policy")
	}
	return &web.Redirect{To: o.path(v), Notice: web.Done(text)}, nil
}

// lastChange says who changed settings last, and when; zero: that is not known.
type lastChange struct {
	By string
	At time.Time
}

// changedMeanwhile explains that settings are not as the form showed them. The form keeps what was typed, and has the
// new revision. errs are what is wrong with what was typed.
func changedMeanwhile(
	last lastChange, managedBy string, differ []string, errs web.FormErrors, now time.Time,
) web.FormErrors {
	errs.Status = http.StatusPreconditionFailed
	who := "Somebody changed these settings since you opened the form: the audit lines in the server's log name them."
	if last.By != "" {
		who = words.Sentence(last.By, "changed these settings at", words.When(last.At, now, nil)+",",
			"since you opened the form")
	}
	errs.General = append(errs.General, who+" What you typed is kept.")
	if managedBy != "" {
		errs.General = append(errs.General, "Perhaps it was ringback apply with the files of "+managedBy+".")
	}
	if len(differ) > 0 {
		errs.General = append(errs.General,
			words.Sentence("Compared with the settings as they are now, saving again changes", words.ListAll(differ)))
	} else if len(errs.Fields) == 0 {
		errs.General = append(errs.General, "The settings are now as you typed them.")
	}
	return errs
}
