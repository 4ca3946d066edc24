package topicpages

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
)

// policyPage is the data of the form of a policy.
type policyPage struct {
	Topic string
	Tabs  []tab
	Lead  lead
	// Revision is that of the policy that the form shows.
	Revision  int64
	ManagedBy string
	Changed   lastChange
	Errors    web.FormErrors
	Groups    []form.Section
	Preview   preview
	CanChange bool
}

// preview says what holds with a policy.
type preview struct {
	Tables []form.Table
	Ladder string
	// Invalid is what the API refuses.
	Invalid web.FormErrors
}

// newPreview shows an effective policy. set is what it does not take from the defaults.
func newPreview(t *client.Topic, set form.Values) preview {
	retries := len(t.Ladder)
	if t.Retries != nil {
		retries = *t.Retries
	}
	return preview{
		Tables: policyForm.Tables(policyForm.Values(t.Raw), set), Ladder: words.Ladder(t.Ladder, retries),
	}
}

// readPolicy reads the policy of a topic. A topic that does not exist has that of a new one.
func readPolicy(v *web.Visit) (*settings, error) {
	ctx, topic := v.Request.Context(), ownerOf(v).Topic
	s := &settings{form: policyForm, path: "/v1/topics/" + url.PathEscape(topic)}
	set, err := v.API.GetTopicSettings(ctx, topic)
	if errors.Is(err, client.ErrNotFound) {
		t, err := s.dryRun(v, json.RawMessage("{}"))
		if err == nil {
			s.holds, s.effective = t, s.form.Values(t.Raw)
		}
		return s, err
	}
	if err != nil {
		return nil, err
	}
	effective, err := v.API.GetTopic(ctx, topic)
	if err != nil {
		return nil, err
	}
	s.exists, s.revision, s.managedBy = true, set.Revision, set.ManagedBy
	s.changed = lastChange{set.UpdatedBy, set.UpdatedAt}
	s.set, s.holds, s.effective = s.form.Values(set.Raw), effective, s.form.Values(effective.Raw)
	return s, nil
}

// showPolicy answers with the form of a policy.
func showPolicy(v *web.Visit) (web.Answer, error) {
	s, err := readPolicy(v)
	if err != nil {
		return nil, err
	}
	return policyAnswer(v, s, s.texts(), web.FormErrors{}), nil
}

// policyAnswer is the form with texts in its fields.
func policyAnswer(v *web.Visit, s *settings, texts form.Texts, errs web.FormErrors) web.Answer {
	o, shown := ownerOf(v), previewOf(v, s, texts)
	if !errs.Any() {
		errs = shown.Invalid
	}
	data := policyPage{
		Topic: o.Topic, Tabs: o.tabs(v, "policy"), Revision: s.revision, ManagedBy: s.managedBy,
		Errors: errs, Changed: s.changed, Groups: s.sections(texts, errs), Preview: shown,
		CanChange: v.CanTopic(access.ChangeTopic, o.Topic),
	}
	stored := s.texts()
	names := slices.DeleteFunc(s.form.Names(), func(name string) bool { return stored[name] == "" })
	switch {
	case !s.exists:
		data.Lead = lead{Text: words.Sentence("There is no topic", o.Topic, "yet: saving creates it")}
	case len(names) == 0:
		data.Lead = lead{Text: words.Sentence("Topic", o.Topic, "has the default policy: nothing is set")}
	default:
		data.Lead = lead{Text: words.Sentence("Topic", o.Topic, "sets", words.Count(int64(len(names)), "field")+
			":", words.List(names))}
	}
	return &web.Page{
		View: "topic-policy", Title: "Policy of " + o.Topic, Section: section, Crumbs: o.crumbs(v, true),
		Data: data, Status: errs.Status,
	}
}

// previewOf says what would hold with texts; what is wrong with them if the API refuses them.
func previewOf(v *web.Visit, s *settings, texts form.Texts) preview {
	doc, changed, errs := s.form.Document(s.set, texts)
	switch {
	case errs.Any():
		return preview{Invalid: errs}
	case len(changed) == 0:
		return newPreview(s.holds, s.set)
	}
	t, err := s.dryRun(v, doc)
	if err != nil {
		errs, ok := web.FormErrorsOf(err, s.form.Names()...)
		if !ok {
			errs.General = append(errs.General, err.Error())
		}
		return preview{Invalid: errs}
	}
	return newPreview(t, s.form.Values(doc))
}

// previewPolicy says what the policy that is typed would do: a part of the form for scripts, else the form.
func previewPolicy(v *web.Visit) (web.Answer, error) {
	s, err := readPolicy(v)
	if err != nil {
		return nil, err
	}
	texts := s.typed(v)
	if v.Request.Header.Get("HX-Request") != "" {
		return &web.Part{View: "topic-policy", Template: "policy-preview", Data: previewOf(v, s, texts)}, nil
	}
	shown, err := s.isShown(v)
	switch {
	case err != nil:
		return nil, err
	case !shown:
		return policyAnswer(v, s, texts, s.conflict(v)), nil
	}
	return policyAnswer(v, s, texts, web.FormErrors{}), nil
}

// changePolicy stores the policy that was typed.
func changePolicy(v *web.Visit) (web.Answer, error) {
	s, err := readPolicy(v)
	if err != nil {
		return nil, err
	}
	changed, answer, err := s.save(v, readPolicy, func(s *settings, texts form.Texts, errs web.FormErrors) web.Answer {
		return policyAnswer(v, s, texts, errs)
	})
	if answer != nil || err != nil {
		return answer, err
	}
	o := ownerOf(v)
	text := words.Sentence("Topic", o.Topic, "is changed:", words.List(changed))
	if len(changed) == 0 {
		text = words.Sentence("Topic", o.Topic, "is created, with the default policy")
	}
	return web.Done(o.path(v), text), nil
}
