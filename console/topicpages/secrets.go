package topicpages

import (
	"errors"
	"slices"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
)

// secretsPage is the data of the page of signing secrets.
type secretsPage struct {
	Owner  owner
	Tabs   []tab
	Lead   lead
	Rows   []secretRow
	Pager  web.Pager
	Errors web.FormErrors
	// Kind and Secret are the fields of the form that adds one.
	Kind, Secret web.Field
	PostTo       string
}

// secretRow is a signing secret.
type secretRow struct {
	ID        string
	Kind      string
	CreatedAt time.Time
	CreatedBy string
	PublicKey string
	RemoveAt  string
}

// showSecrets answers with the secrets of a topic or a lane.
func showSecrets(v *web.Visit) (web.Answer, error) { return secretsAnswer(v, web.FormErrors{}) }

func secretsAnswer(v *web.Visit, errs web.FormErrors) (web.Answer, error) {
	o := ownerOf(v)
	p := secretsPage{Owner: o, Tabs: o.tabs(v, "secrets"), Errors: errs, PostTo: o.path(v, "secrets")}
	p.Kind = web.Field{
		Name: "kind", Label: "Kind", Kind: "select", Value: v.Form("kind"), Error: errs.Of("kind"), Options: []web.Link{
			{To: "hmac", Text: words.KeyKind("hmac")}, {To: "ed25519", Text: words.KeyKind("ed25519")},
		},
	}
	p.Secret = web.Field{
		Name: "secret", Label: "Secret", Error: errs.Of("secret"), Placeholder: "whsec_…",
		Hint: "Paste one that begins with whsec_ or whsk_; it says its kind itself. Empty: the server makes one, and " +
			"shows it once.",
	}
	if err := p.read(v); err != nil {
		return nil, err
	}
	return &web.Page{View: "topic-secrets", Title: "Secrets of " +
		o.String(), Section: section, Crumbs: o.crumbs(v, true), Data: p, Status: errs.Status}, nil
}

// read reads a page of the secrets, and the public keys among them.
func (p *secretsPage) read(v *web.Visit) error {
	ctx, o := v.Request.Context(), p.Owner
	page, err := v.API.SecretsPage(ctx, o.Topic, o.Lane, client.PageOptions{Cursor: v.Query("cursor"), Limit: pageSize})
	if errors.Is(err, client.ErrNotFound) {
		p.Lead = lead{Text: words.Sentence("There is no", o.String(), "yet: a secret creates it")}
		return nil
	}
	if err != nil {
		return err
	}
	keys := make(map[string]string)
	for key, err := range v.API.Keys(ctx, o.Topic, o.Lane) {
		if err != nil {
			return err
		}
		if keys[key.ID] = key.PublicKey; len(keys) >= 2*pageSize {
			break
		}
	}
	for _, s := range page.Items {
		row := secretRow{
			ID: s.ID, Kind: "hmac", CreatedAt: s.CreatedAt, CreatedBy: s.CreatedBy, PublicKey: keys[s.ID],
			RemoveAt: o.path(v, "secrets", s.ID, "remove"),
		}
		if row.PublicKey != "" {
			row.Kind = "ed25519"
		}
		p.Rows = append(p.Rows, row)
	}
	p.Pager = v.Pager(page.NextCursor)
	p.Lead = newSecretsLead(o, p.Rows, v.Now)
	return nil
}

func newSecretsLead(o owner, rows []secretRow, now time.Time) lead {
	n := len(rows)
	switch {
	case n == 0 && o.Lane != "":
		return lead{Text: "The lane has no secrets of its own: those of its topic sign its attempts."}
	case n == 0:
		return lead{"warn", "Attempts are not signed: receivers cannot tell that they come from here."}
	case n == 1:
		return lead{"ok", words.Sentence("Attempts are signed with 1 secret, "+
			"created", words.Ago(rows[0].CreatedAt, now))}
	}
	newest := slices.MaxFunc(rows, func(a, b secretRow) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return lead{"ok", words.Sentence("Attempts are signed with", words.Count(int64(n), "secret")+", the newest created",
		words.Ago(newest.CreatedAt, now))}
}

// addSecret adds a secret, which the next page shows once.
func addSecret(v *web.Visit) (web.Answer, error) {
	o := ownerOf(v)
	s := client.NewSecret{Secret: v.Form("secret")}
	if s.Secret == "" {
		s.Kind = v.Form("kind")
	}
	added, err := v.API.AddSecret(v.Request.Context(), o.Topic, o.Lane, s)
	if err != nil {
		if !v.CanTopic(access.AddSecret, o.Topic) {
			return nil, err
		}
		return formProblem(v, err, secretsAnswer, "secret", "kind")
	}
	text := words.Sentence("Secret", added.ID, "of", o.String(),
		"is added. It is shown only now: give it to the receiver")
	if added.PublicKey != "" {
		text = words.Sentence("Secret", added.ID, "of", o.String(),
			"is added. It is shown only now; receivers need only its public key, which the list has")
	}
	to := web.Done(o.path(v, "secrets"), text)
	to.Notice.Secret = added.Secret
	return to, nil
}

// removeSecret removes a secret.
func removeSecret(v *web.Visit) (web.Answer, error) {
	o, id := ownerOf(v), v.PathValue("id")
	err := v.API.RemoveSecret(v.Request.Context(), o.Topic, o.Lane, id)
	if errors.Is(err, client.ErrNotFound) {
		return web.Warn(o.path(v, "secrets"), "The secret is gone already."), nil
	}
	if err != nil {
		return nil, err
	}
	return web.Done(o.path(v, "secrets"), words.Sentence("Secret", id, "of", o.String(), "is removed")), nil
}
