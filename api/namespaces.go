package api

import (
	"net/http"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

func (a *api) namespaceEndpoints() []endpoint {
	const namespace = "/v1/namespaces/{namespace}"
	return []endpoint{
		at("GET /v1/namespaces", access.ReadNamespaces, ofAll, a.namespaces, paged()),
		at("GET "+namespace, access.ReadNamespaces, ofAll, a.namespace),
		at("PUT "+namespace, access.PutNamespace, ofAll, a.putNamespace, ofSettings),
		at("DELETE "+namespace, access.DeleteNamespace, ofAll, a.deleteNamespace, query("purge"), ofSettings),
	}
}

// namespaces lists namespaces in order of name.
func (a *api) namespaces(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r, request.Namespaces)
	if err != nil {
		return err
	}
	return a.serveList(w, r, p.limit, func(o *response.Buffer) error {
		found, err := a.service.Namespaces(r.Context(), p.after, p.limit+1)
		if err == nil {
			writePage(o, p, found, members, func(n *job.Namespace) string { return n.Name })
		}
		return err
	})
}

// namespace answers with a namespace and its usage, which changes without a new revision: there is no 304.
func (a *api) namespace(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathNamespace(r)
	if err != nil {
		return err
	}
	found, err := a.service.Namespace(r.Context(), name)
	if err != nil {
		return noNamespace(err)
	}
	if s, err := a.service.FindStore(r.Context(), name); err == nil {
		if usage, err := s.NamespaceUsage(r.Context(), name); err == nil { // else its store is away, or slow
			found.Usage = &usage
		}
	}
	answerDocument(w, r, http.StatusOK, found.Revision, func(o *response.Buffer) { o.Members(&found) })
	return nil
}

// putNamespace creates a namespace on a store, or sets its quota.
func (a *api) putNamespace(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathNewNamespace(r)
	if err != nil {
		return err
	}
	ifRevision, err := request.IfRevision(r)
	if err != nil {
		return err
	}
	text, err := request.ReadJSON(w, r, request.MaxTokenBytes)
	if err != nil {
		return err
	}
	n, p := request.DecodeNamespace(text)
	if p != nil {
		return p
	}
	n.Name = name
	put, err := a.service.PutNamespace(r.Context(), n, ifRevision)
	if err != nil {
		return err
	}
	answerDocument(w, r, http.StatusOK, put.Revision, func(o *response.Buffer) { o.Members(&put) })
	return nil
}

// deleteNamespace removes a namespace that is not in use, and with purge=true its schedules, jobs, topics and lanes
// before.
func (a *api) deleteNamespace(w http.ResponseWriter, r *http.Request) error {
	name, ifRevision, err := request.Bodiless(r, request.PathNamespace)
	if err != nil {
		return err
	}
	q := request.NewQuery(r)
	deletion := store.NamespaceDeletion{
		Name: name, IfRevision: ifRevision, Purge: q.Bool("purge", false),
		Actor: actorOf(r.Context()),
	}
	if err := q.Err(); err != nil {
		return err
	}
	s, err := a.service.FindStore(r.Context(), deletion.Name)
	if err != nil {
		return err
	}
	done, err := s.DeleteNamespace(r.Context(), deletion)
	if done.Cancelled > 0 || done.Purged > 0 {
		a.audit(r, "namespace.purge", "name", name, "cancelled", done.Cancelled, "purged", done.Purged)
	}
	if err != nil {
		return noNamespace(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// noNamespace explains a namespace that was not found.
func noNamespace(err error) error { return orNotFound(err, "no such namespace: create it first") }
