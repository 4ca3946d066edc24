package topicpages

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
)

// settings are those of a topic or a lane, as they are stored, with their form.
type settings struct {
	form *form.Form
	// path is that of the API.
	path string
	// exists reports whether something is stored, and revision is its revision.
	exists    bool
	revision  int64
	managedBy string
	changed   lastChange
	// set is what is stored, and effective what holds.
	set, effective form.Values
	// holds is effective as a policy; nil: they are those of a lane.
	holds *client.Topic
}

// lastChange says who changed settings last, and when; zero: that is not known.
type lastChange struct {
	By string
	At time.Time
}

// texts are those of what is stored.
func (s *settings) texts() form.Texts { return s.form.Texts(s.set) }

// typed returns the texts of the form that was sent.
func (s *settings) typed(v *web.Visit) form.Texts { return s.form.Typed(v.Request.PostForm, s.texts()) }

// sections are the fields of the form with texts.
func (s *settings) sections(texts form.Texts, errs web.FormErrors) []form.Section {
	return s.form.Sections(texts, s.effective, errs)
}

// dryRun returns what would hold with a document.
func (s *settings) dryRun(v *web.Visit, doc json.RawMessage) (*client.Topic, error) {
	raw, err := v.API.Call(v.Request.Context(),
		client.Request{Method: http.MethodPut, Path: s.path + "?dry_run=true&defaults=true", Body: doc})
	if err != nil {
		return nil, err
	}
	t := new(client.Topic)
	return t, json.Unmarshal(raw, t)
}

// isShown reports whether a form was sent that showed the settings as they are stored.
func (s *settings) isShown(v *web.Visit) (bool, error) {
	revision, err := v.Revision()
	return revision == s.revision, err
}

// conflict says that the settings are not as the form showed them.
func (s *settings) conflict(v *web.Visit) web.FormErrors {
	_, differ, errs := s.form.Document(s.set, s.typed(v))
	errs.Conflict(v.ChangedSince("these settings", s.changed.By, s.changed.At), "the settings as they are", differ)
	if s.managedBy != "" {
		errs.General = append(errs.General, "Perhaps it was ringback apply with the files of "+s.managedBy+".")
	}
	return errs
}

// save stores what was typed, if the settings are still as the form showed them. It returns the names of what it
// changed, or an answer with the form. read reads the settings again, and show shows them.
func (s *settings) save(
	v *web.Visit, read func(*web.Visit) (*settings, error), show func(*settings, form.Texts, web.FormErrors) web.Answer,
) (changed []string, answer web.Answer, err error) {
	texts := s.typed(v)
	doc, changed, errs := s.form.Document(s.set, texts)
	if len(changed) == 0 && !errs.Any() && (s.exists || ownerOf(v).Lane != "") {
		return nil, web.Warn(v.Base+"/"+v.Here, "Nothing was changed: the settings are already so."), nil
	}
	shown, err := s.isShown(v)
	switch {
	case err != nil:
		return nil, nil, err
	case !shown:
		return nil, show(s, texts, s.conflict(v)), nil
	case errs.Any():
		return nil, show(s, texts, errs), nil
	}
	_, err = v.Send(http.MethodPut, s.path, doc, s.revision)
	if errors.Is(err, client.ErrRevision) { // since it was read
		if s, err = read(v); err != nil {
			return nil, nil, err
		}
		return nil, show(s, s.typed(v), s.conflict(v)), nil
	}
	if err != nil {
		answer, err = formProblem(v, err, func(_ *web.Visit, errs web.FormErrors) (web.Answer, error) {
			return show(s, texts, errs), nil
		}, s.form.Names()...)
		return nil, answer, err
	}
	return changed, nil, nil
}
