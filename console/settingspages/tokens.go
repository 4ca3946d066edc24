package settingspages

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job/units"
)

// soon is how long before its end a token is marked.
const soon = 7 * 24 * time.Hour

// tokensData is the data of the view settings-tokens.
type tokensData struct {
	Lead, Class string
	Rows        []tokenRow
	Pager       web.Pager
	// Namespaces reports whether the tokens are of several namespaces.
	Namespaces bool
	Form       tokenForm
}

// tokenRow is a token in words.
type tokenRow struct {
	client.Token

	TopicsText string
	Own        bool // it is the reader's
	Ended      bool
	EndsSoon   bool
}

func rowOf(v *web.Visit, t *client.Token) tokenRow {
	row := tokenRow{Token: *t, TopicsText: topicsText(t.Topics), Own: t.ID == v.Who.TokenID}
	if !t.ExpiresAt.IsZero() {
		row.Ended = !t.ExpiresAt.After(v.Now)
		row.EndsSoon = !row.Ended && t.ExpiresAt.Before(v.Now.Add(soon))
	}
	return row
}

// who returns who created the token.
func (r *tokenRow) who() string {
	switch {
	case r.CreatedBy == "":
		return "somebody without a token"
	case r.CreatedByID != "":
		return r.CreatedBy + " (" + r.CreatedByID + ")"
	}
	return r.CreatedBy
}

// usedText says when the token was used, to the hour.
func (r *tokenRow) usedText(now time.Time) string {
	switch used := now.Sub(r.LastUsedAt); {
	case r.LastUsedAt.IsZero():
		return "never"
	case used < time.Hour:
		return "this hour"
	default:
		return words.Ago(r.LastUsedAt, now)
	}
}

// tokenForm is the form of a new token.
type tokenForm struct {
	Errors                web.FormErrors
	Role, Bodies          string
	Roles                 []roleChoice
	Name, Topics, Expires web.Field
	Namespace             *web.Field // nil: it is that of the reader's token
}

// roleChoice is a role that a token can have.
type roleChoice struct{ Name, What string }

// Fields of the form, as the API names them.
var tokenFields = []string{"name", "role", "topics", "bodies", "expires_in", "namespace"}

// newTokenForm returns the form with what was sent, or without values as it is at first.
func newTokenForm(v *web.Visit, errs web.FormErrors) tokenForm {
	value := func(name, first string) string {
		if v.Request.Method != http.MethodPost {
			return first
		}
		return v.Form(name)
	}
	f := tokenForm{
		Errors: errs, Role: value("role", string(access.Read)), Bodies: value("bodies", ""),
		Name: web.Field{
			Name: "name", Label: "Name", Value: value("name", ""), Required: true, Error: errs.Of("name"),
			Hint: "Of whom or what uses it, such as shop-api or anna: changes are logged under it. 1 to 64 of A-Z " +
				"a-z 0-9 . _ and -.",
		},
		Topics: web.Field{
			Name: "topics", Label: "Topics", Value: value("topics", ""), Error: errs.Of("topics"),
			Hint: "Names, or beginnings with * such as order.*, separated by spaces. Empty: all topics. Not for admin.",
		},
		Expires: web.Field{
			Name: "expires_in", Label: "Ends in", Value: value("expires_in", "90d"), Error: errs.Of("expires_in"),
			Hint: "Such as 12h or 90d, 1m to 3653d. Empty: never.",
		},
	}
	for _, role := range access.Roles() {
		f.Roles = append(f.Roles, roleChoice{string(role), words.Role(string(role))})
	}
	if v.Who.Root {
		f.Namespace = &web.Field{
			Name: "namespace", Label: "Namespace", Value: value("namespace", v.Namespace), Error: errs.Of("namespace"),
			Hint: "The only one that it may use. It must exist.",
		}
	}
	return f
}

// tokens lists the tokens.
func tokens(v *web.Visit) (web.Answer, error) { return tokensPage(v, web.FormErrors{}) }

// tokensPage is the page of tokens, with what is wrong with its form.
func tokensPage(v *web.Visit, errs web.FormErrors) (web.Answer, error) {
	found, err := v.API.TokensPage(v.Request.Context(), client.PageOptions{Cursor: v.Query("cursor"), Limit: perPage})
	if err != nil {
		return nil, err
	}
	data := tokensData{Pager: v.Pager(found.NextCursor), Form: newTokenForm(v, errs)}
	for i := range found.Items {
		data.Rows = append(data.Rows, rowOf(v, &found.Items[i]))
	}
	data.Namespaces = slices.ContainsFunc(data.Rows, func(r tokenRow) bool { return r.Namespace != v.Namespace })
	data.Lead, data.Class = tokensLead(v, data)
	return &web.Page{
		View: "settings-tokens", Title: "Tokens", Section: section, Crumbs: crumbs(v), Status: errs.Status, Data: data,
	}, nil
}

// tokensLead says how many tokens there are, and which end soon.
func tokensLead(v *web.Visit, data tokensData) (sentence, class string) {
	if v.Who.Actor == "" {
		class = "warn"
		sentence = "This server needs no token, so these protect nothing: start it with a root token. "
	}
	ended, ending := int64(0), int64(0)
	for _, row := range data.Rows {
		switch {
		case row.Ended:
			ended++
		case row.EndsSoon:
			ending++
		}
	}
	switch {
	case data.Pager.First != "" || data.Pager.Next != "":
		sentence += "There are more tokens than one page shows; on this page are " + words.Number(int64(len(data.Rows)))
	case len(data.Rows) == 0:
		return sentence + "There are no tokens yet: create one for each client and each person.", class
	default:
		sentence += words.Count(int64(len(data.Rows)), "token")
	}
	var parts []string
	if ending > 0 {
		parts, class = append(parts, words.Number(ending)+words.Verb(ending, " ends", " end")+" within a week"), "warn"
	}
	if ended > 0 {
		parts = append(parts, words.Number(ended)+words.Verb(ended, " has", " have")+" ended")
	}
	if len(parts) == 0 {
		return sentence + ".", class
	}
	return sentence + ": " + strings.Join(parts, ", ") + ".", class
}

// createToken creates a token, whose text the next page shows once.
func createToken(v *web.Visit) (web.Answer, error) {
	request, errs := readTokenForm(v)
	if errs.Any() {
		return tokensPage(v, errs)
	}
	created, err := v.API.CreateToken(v.Request.Context(), request)
	if err != nil {
		if errs, ok := web.FormErrorsOf(err, tokenFields...); ok {
			return tokensPage(v, errs)
		}
		return nil, err
	}
	to := web.Done(v.Path("settings", "tokens"), "Token "+created.Name+" ("+created.ID+
		") is created. Copy its text now: it is shown only here, and the server stores only its hash.")
	to.Notice.Secret = created.Token
	return to, nil
}

// readTokenForm reads the form of a new token.
func readTokenForm(v *web.Visit) (t client.TokenRequest, errs web.FormErrors) {
	t = client.TokenRequest{Name: v.Form("name"), Role: v.Form("role")}
	if patterns := strings.Fields(strings.ReplaceAll(v.Form("topics"), ",", " ")); len(patterns) > 0 {
		t.Topics = patterns
	}
	if v.Who.Root {
		t.Namespace = v.Form("namespace")
	}
	switch bodies := v.Form("bodies"); bodies {
	case "":
	case "true", "false":
		t.Bodies = new(bodies == "true")
	default:
		errs.Add("bodies", "must be one of the choices")
	}
	if text := v.Form("expires_in"); text != "" {
		life, err := units.ParseDuration(text)
		switch {
		case err != nil:
			errs.Add("expires_in", err.Error())
		case life <= 0:
			errs.Add("expires_in", "must be 1m to 3653d (ten years)")
		}
		t.ExpiresIn = life
	}
	return t, errs
}

// token shows a token, and the form that revokes it.
func token(v *web.Visit) (web.Answer, error) {
	found, err := v.API.GetToken(v.Request.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	row := rowOf(v, found)
	return &web.Page{
		View: "settings-token", Title: "Token " + found.Name + " (" + found.ID + ")", Section: section,
		Crumbs: crumbs(v, web.Link{To: v.Path("settings", "tokens"), Text: "Tokens"}), Data: &row,
	}, nil
}

// revokeToken revokes a token.
func revokeToken(v *web.Visit) (web.Answer, error) {
	found, err := v.API.GetToken(v.Request.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := v.API.RevokeToken(v.Request.Context(), found.ID); err != nil {
		return nil, err
	}
	return web.Done(v.Path("settings", "tokens"), "Token "+found.Name+" ("+found.ID+
		") is revoked. Its sessions and clients end within 5 seconds."), nil
}
