package api

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
)

func (a *api) tokenEndpoints() []endpoint {
	return []endpoint{
		at("GET /v1/whoami", access.ReadService, ofNone, a.whoami),
		at("GET /v1/tokens", access.ReadTokens, ofAll, a.tokens, paged()),
		at("POST /v1/tokens", access.CreateToken, ofAll, a.createToken),
		at("GET /v1/tokens/{id}", access.ReadTokens, ofAll, a.token),
		at("DELETE /v1/tokens/{id}", access.RevokeToken, ofAll, a.revokeToken, audited),
	}
}

// createToken creates a token. Its answer is the only one that contains the token.
func (a *api) createToken(w http.ResponseWriter, r *http.Request) error {
	text, err := request.ReadJSON(w, r, request.MaxTokenBytes)
	if err != nil {
		return err
	}
	token, p := request.DecodeToken(text, time.Now())
	if p != nil {
		return p
	}
	if err := a.grant(r, &token); err != nil {
		return err
	}
	created, secret, err := a.service.CreateToken(r.Context(), token, request.PrincipalOf(r.Context()).Root)
	if err != nil {
		return err
	}
	a.audit(r, access.CreateToken, "id", created.ID, "name", created.Name, "role", created.Role,
		"for", created.Namespace)
	w.Header().Set("Cache-Control", "no-store")
	response.Answer(w, http.StatusCreated, func(o *response.Buffer) {
		o.Members(&created)
		o.Text("token", secret)
	})
	return nil
}

// grant completes a new token, and refuses one that may do more than the token of the request.
func (a *api) grant(r *http.Request, token *access.Token) error {
	p := request.PrincipalOf(r.Context())
	token.CreatedBy, token.CreatedByID = p.Actor, p.TokenID
	if token.Namespace == "" {
		token.Namespace = p.Namespace
	}
	switch {
	case p.Root:
		exists, err := a.service.HasNamespace(r.Context(), token.Namespace)
		if err == nil && !exists {
			err = response.Invalid(job.FieldError{
				Field: "/namespace", Detail: "must exist: create the namespace first",
			})
		}
		return err
	case token.Namespace != p.Namespace:
		return response.NewProblem(response.Forbidden, "this token may create tokens for the namespace "+p.Namespace+
			" only")
	case !p.ExpiresAt.IsZero() && (token.ExpiresAt.IsZero() || token.ExpiresAt.After(p.ExpiresAt)):
		return response.Invalid(job.FieldError{
			Field: "/expires_in", Detail: "must end before this token expires, at " + p.ExpiresAt.Format(time.RFC3339),
		})
	case token.Bodies && !p.Bodies:
		return response.NewProblem(response.Forbidden, "this token may not read bodies, so it creates tokens with "+
			"bodies: false only")
	}
	return nil
}

// tokens lists tokens in order of id.
func (a *api) tokens(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r, request.Tokens)
	if err != nil {
		return err
	}
	return a.serveList(w, r, p.limit, func(o *response.Buffer) error {
		found, err := a.service.Tokens(r.Context(), tokenNamespace(r), p.after, p.limit+1)
		if err == nil {
			writePage(o, p, found, members, func(t *access.Token) string { return t.ID })
		}
		return err
	})
}

// tokenNamespace returns the namespace whose tokens a request concerns; empty: all, for a root that chooses no
// namespace.
func tokenNamespace(r *http.Request) string {
	p := request.PrincipalOf(r.Context())
	if p.Root && len(r.Header[namespaceHeader]) == 0 {
		return ""
	}
	return p.Namespace
}

// token answers with a token, without its secret.
func (a *api) token(w http.ResponseWriter, r *http.Request) error {
	found, err := a.service.Token(r.Context(), tokenNamespace(r), r.PathValue("id"))
	if err != nil {
		return noToken(err)
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.Members(&found) })
	return nil
}

// revokeToken removes a token.
func (a *api) revokeToken(w http.ResponseWriter, r *http.Request) error {
	if err := request.RequireNoBody(r); err != nil {
		return err
	}
	if err := a.service.RevokeToken(r.Context(), tokenNamespace(r), r.PathValue("id")); err != nil {
		return noToken(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// noToken explains a token that was not found.
func noToken(err error) error {
	return orNotFound(err, "no such token: it was revoked, or never existed")
}

// whoami answers with whose the request is.
func (a *api) whoami(w http.ResponseWriter, r *http.Request) error {
	response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.Members(request.PrincipalOf(r.Context())) })
	return nil
}
