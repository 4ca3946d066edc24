package settingspages

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// defaultNamespace always exists, and is not removed.
const defaultNamespace = "default"

// namespacesData is the data of the view settings-namespaces.
type namespacesData struct {
	Lead  string
	Rows  []namespaceRow
	Pager web.Pager
	Form  formData
}

// namespaceRow is a namespace in words.
type namespaceRow struct {
	client.Namespace

	// Console is the link of its console.
	Console string
	Here    bool // it is the page's
}

// pending returns the unfinished jobs and their quota in words.
func (r *namespaceRow) pending() string {
	quota := ""
	if r.Quota.Pending > 0 {
		quota = words.Number(r.Quota.Pending)
	}
	return ofQuota(usedOf(r.Usage)["quota.pending"], quota)
}

// bytesOf returns their size and its quota in words.
func (r *namespaceRow) bytesOf() string {
	return ofQuota(usedOf(r.Usage)["quota.bytes"], r.Quota.Bytes)
}

// ofQuota returns what is used of a quota; used is empty: it was not counted.
func ofQuota(used, quota string) string {
	if quota == "" {
		return strings.TrimPrefix(used+", not bounded", ", ")
	}
	return strings.TrimPrefix(used+" of "+quota, " of ")
}

// usedOf returns what a namespace uses of the quotas of the form; nil: it was not counted.
func usedOf(u *client.NamespaceUsage) map[string]string {
	if u == nil {
		return nil
	}
	return map[string]string{
		"quota.pending": words.Number(u.Pending), "quota.bytes": words.Bytes(u.Bytes),
		"quota.kept_bytes": words.Bytes(u.KeptBytes), "quota.settings": words.Number(u.Settings),
		"quota.settings_bytes": words.Bytes(u.SettingsBytes),
	}
}

// namespaceForm is the form of a namespace. Its name is a field of the page.
var namespaceForm = form.Of[client.NamespaceRequest](form.Group{Fields: []form.Field{
	{Field: web.Field{
		Name: "store", Label: "Store", Hint: "Where its jobs are. It stays there. Empty: main.",
	}},
	{Field: web.Field{Name: "quota.pending", Label: "Unfinished jobs, at most", Hint: "Empty: not bounded."}},
	{Field: web.Field{
		Name: "quota.bytes", Label: "Size of the unfinished jobs, at most",
		Hint: "Bodies, URLs, headers and labels, such as 1GiB. Empty: not bounded.",
	}},
	{Field: web.Field{
		Name: "quota.kept_bytes", Label: "Size of the ended jobs that are kept, at most",
		Hint: "From it on nothing is registered. Such as 4GiB. Empty: not bounded.",
	}},
	{Field: web.Field{
		Name: "quota.settings", Label: "Topics, lanes with settings and schedules, at most",
		Hint: "Empty: not bounded.",
	}},
	{Field: web.Field{
		Name: "quota.settings_bytes", Label: "Size of their settings, at most",
		Hint: "Such as 8MiB. Empty: not bounded.",
	}},
	{Field: web.Field{
		Name: "quota.rate", Label: "Registrations, at most",
		Hint: "Of all processes together, such as 500/s. Empty: not bounded.",
	}},
}})

// quotaFields are the fields of the form that can be changed later.
var quotaFields = []string{
	"quota.pending", "quota.bytes", "quota.kept_bytes", "quota.settings", "quota.settings_bytes", "quota.rate",
}

// formData is the data of the form of a namespace.
type formData struct {
	Errors   web.FormErrors
	Fields   []web.Field
	Revision int64
}

// typed returns the texts of the form that was sent, if one was; those that it lacks are as before.
func typed(v *web.Visit, before form.Texts) form.Texts {
	texts := namespaceForm.Typed(v.Request.PostForm, before)
	for _, number := range []string{"quota.pending", "quota.settings"} {
		texts[number] = strings.ReplaceAll(texts[number], ",", "") // as pages write numbers
	}
	return texts
}

// quotaForm returns the form with a namespace's quota, or with what was sent.
func quotaForm(v *web.Visit, n *client.Namespace, errs web.FormErrors) formData {
	texts := typed(v, namespaceForm.Texts(namespaceForm.Values(n.Raw)))
	f := formData{errs, namespaceForm.Fields(texts, errs, quotaFields...), n.Revision}
	for i, field := range f.Fields {
		if used := usedOf(n.Usage)[field.Name]; used != "" {
			f.Fields[i].Hint = "Used: " + used + ". " + field.Hint
		}
	}
	if seen, err := v.Revision(); err == nil && errs.Status != http.StatusPreconditionFailed {
		// what somebody else has stored since is not seen in a form that is refused for another reason
		f.Revision = seen
	}
	return f
}

// newForm returns the form of a new namespace with what was sent.
func newForm(v *web.Visit, errs web.FormErrors) formData {
	name := web.Field{
		Name: "namespace", Label: "Name", Value: v.Form("namespace"), Required: true,
		Error: errs.Of("namespace"), Hint: "1 to 32 of a-z 0-9 and -, not beginning with -.",
	}
	fields := namespaceForm.Fields(typed(v, nil), errs, namespaceForm.Names()...)
	return formData{Errors: errs, Fields: append([]web.Field{name}, fields...)}
}

// put puts the namespace of the form that was sent, if what is stored has a revision; 0: if nothing is stored.
func put(v *web.Visit, name string, revision int64) (web.FormErrors, error) {
	doc, _, errs := namespaceForm.Document(nil, typed(v, nil))
	if errs.Any() {
		return errs, nil
	}
	_, err := v.Send(http.MethodPut, "/v1/namespaces/"+url.PathEscape(name), doc, revision)
	if err == nil || errors.Is(err, client.ErrRevision) {
		return errs, err
	}
	errs, ok := web.FormErrorsOf(err, append(namespaceForm.Names(), "namespace")...)
	if ok {
		err = nil
	}
	return errs, err
}

// countedAtOnce is the number of namespaces whose use a list reads at the same time.
const countedAtOnce = 4

// namespaces lists the namespaces.
func namespaces(v *web.Visit) (web.Answer, error) { return namespacesPage(v, web.FormErrors{}) }

// namespacesPage is the page of namespaces, with what is wrong with its form.
func namespacesPage(v *web.Visit, errs web.FormErrors) (web.Answer, error) {
	found, err := v.API.NamespacesPage(v.Request.Context(),
		client.PageOptions{Cursor: v.Query("cursor"), Limit: perPage})
	if err != nil {
		return nil, err
	}
	data := namespacesData{Pager: v.Pager(found.NextCursor), Form: newForm(v, errs)}
	for part := range slices.Chunk(found.Items, countedAtOnce) {
		var all sync.WaitGroup
		for i := range part {
			all.Go(func() {
				if n, err := v.API.GetNamespace(v.Request.Context(), part[i].Name); err == nil {
					part[i].Usage = n.Usage
				}
			})
		}
		all.Wait()
	}
	for _, n := range found.Items {
		data.Rows = append(data.Rows,
			namespaceRow{Namespace: n, Console: consoleOf(v, n.Name), Here: n.Name == v.Namespace})
	}
	total := words.Count(int64(len(data.Rows)), "namespace")
	if data.Pager.First != "" || data.Pager.Next != "" {
		total = "These are " + total + ", and there are more on other pages"
	}
	data.Lead = total + "; you are in " + v.Namespace + "."
	return &web.Page{
		View: "settings-namespaces", Title: "Namespaces", Section: section, Crumbs: crumbs(v),
		Status: errs.Status, Data: data,
	}, nil
}

// consoleOf returns the link of a namespace's console.
func consoleOf(v *web.Visit, name string) string {
	if name == defaultNamespace {
		return v.Root + "/"
	}
	return v.Root + "/@" + name + "/"
}

// createNamespace creates a namespace.
func createNamespace(v *web.Visit) (web.Answer, error) {
	var errs web.FormErrors
	var err error
	name := v.Form("namespace")
	if name == "" {
		errs.Add("namespace", "is required")
	} else {
		errs, err = put(v, name, 0)
	}
	switch {
	case errors.Is(err, client.ErrRevision):
		errs.Add("namespace", "exists already: choose another name, or open it in the list")
		errs.Status = http.StatusPreconditionFailed
		return namespacesPage(v, errs)
	case err != nil:
		return nil, err
	case errs.Any():
		return namespacesPage(v, errs)
	}
	return web.Done(v.Path("settings", "namespaces"), "Namespace "+name+
		" is created. Create its tokens next: each belongs to one namespace."), nil
}

// namespaceData is the data of the view settings-namespace.
type namespaceData struct {
	namespaceRow

	Lead    string
	Form    formData
	Removes bool // it can be removed
}

// namespace shows a namespace, and the form of its quota.
func namespace(v *web.Visit) (web.Answer, error) { return namespacePage(v, web.FormErrors{}) }

// namespacePage is the page of a namespace, with what is wrong with its form.
func namespacePage(v *web.Visit, errs web.FormErrors) (web.Answer, error) {
	n, err := v.API.GetNamespace(v.Request.Context(), v.PathValue("name"))
	if err != nil {
		return nil, err
	}
	data := namespaceData{
		namespaceRow: namespaceRow{Namespace: *n, Console: consoleOf(v, n.Name), Here: n.Name == v.Namespace},
		Form:         quotaForm(v, n, errs), Lead: quotaText(n), Removes: n.Name != defaultNamespace,
	}
	return &web.Page{
		View: "settings-namespace", Title: "Namespace " + n.Name, Section: section, Status: errs.Status, Data: data,
		Crumbs: crumbs(v, web.Link{To: v.Path("settings", "namespaces"), Text: "Namespaces"}),
	}, nil
}

// quotaText says where a namespace is, and what bounds it.
func quotaText(n *client.Namespace) string {
	var parts []string
	if n.Quota.Pending > 0 {
		parts = append(parts, words.Count(n.Quota.Pending, "unfinished job"))
	}
	if n.Quota.Bytes != "" {
		parts = append(parts, n.Quota.Bytes+" of unfinished jobs")
	}
	if n.Quota.KeptBytes != "" {
		parts = append(parts, n.Quota.KeptBytes+" of ended jobs")
	}
	if n.Quota.Settings > 0 {
		parts = append(parts, words.Number(n.Quota.Settings)+" topics, lanes and schedules")
	}
	if n.Quota.SettingsBytes != "" {
		parts = append(parts, n.Quota.SettingsBytes+" of settings")
	}
	if n.Quota.Rate != "" {
		parts = append(parts, n.Quota.Rate+" registrations")
	}
	if len(parts) == 0 {
		return "The jobs of " + n.Name + " are on the store " + n.Store + ", without a quota."
	}
	return "The jobs of " + n.Name + " are on the store " + n.Store + ", and it may have " + words.List(parts) + "."
}

// putNamespace sets the quota of a namespace, if it is as it was when the form was shown.
func putNamespace(v *web.Visit) (web.Answer, error) {
	revision, err := v.Revision()
	if err != nil {
		return nil, err
	}
	name := v.PathValue("name")
	errs, err := put(v, name, revision)
	switch {
	case errors.Is(err, client.ErrRevision):
		return changedMeanwhile(v)
	case err != nil:
		return nil, err
	case errs.Any():
		return namespacePage(v, errs)
	}
	return web.Done(v.Path("settings", "namespaces", name), "The quota of "+name+
		" is changed. All processes follow it within 5 seconds."), nil
}

// changedMeanwhile shows the form again, over what somebody else has saved since it was opened.
func changedMeanwhile(v *web.Visit) (web.Answer, error) {
	return namespacePage(v, web.FormErrors{Status: http.StatusPreconditionFailed, General: []string{
		"Somebody has changed this namespace since you opened the form. The sentence at the top says what it has " +
			"now, the form has what you wrote: save it again to replace theirs.",
	}})
}

// deletionData is the data of the view settings-namespace-delete.
type deletionData struct {
	Name    string
	Errors  web.FormErrors
	Confirm web.Field
	Purge   bool
}

// confirmDeletion asks before a namespace is removed.
func confirmDeletion(v *web.Visit) (web.Answer, error) { return deletionPage(v, web.FormErrors{}) }

// deletionPage asks before a namespace is removed, with what is wrong with the form.
func deletionPage(v *web.Visit, errs web.FormErrors) (web.Answer, error) {
	n, err := v.API.GetNamespace(v.Request.Context(), v.PathValue("name"))
	if err != nil {
		return nil, err
	}
	errs.Heading = "It is not removed yet" // although a part of what is in it may be
	data := deletionData{
		Name: n.Name, Errors: errs, Purge: v.Form("purge") == "true",
		Confirm: web.Field{
			Name: "confirm", Label: "Type the name " + n.Name + " to confirm", Value: v.Form("confirm"), Required: true,
			Error: errs.Of("confirm"),
		},
	}
	return &web.Page{
		View: "settings-namespace-delete", Title: "Remove " + n.Name, Section: section, Status: errs.Status, Data: data,
		Crumbs: crumbs(v,
			web.Link{To: v.Path("settings", "namespaces"), Text: "Namespaces"},
			web.Link{To: v.Path("settings", "namespaces", n.Name), Text: n.Name}),
	}, nil
}

// deleteNamespace removes a namespace.
func deleteNamespace(v *web.Visit) (web.Answer, error) {
	name, errs := v.PathValue("name"), web.FormErrors{}
	if v.Form("confirm") != name {
		errs.Add("confirm", "the name must be "+name)
		return deletionPage(v, errs)
	}
	purge := v.Form("purge") == "true"
	err := v.API.DeleteNamespace(v.Request.Context(), name, purge)
	if purge && err != nil && v.Overdue() {
		return unfinishedPage(v)
	}
	if err != nil {
		if errs, ok := web.FormErrorsOf(err); ok {
			return deletionPage(v, errs)
		}
		return nil, err
	}
	return web.Done(v.Root+"/settings/namespaces", fmt.Sprintf("Namespace %s is removed.", name)), nil
}

// unfinishedPage answers a removal that took longer than a page may. What was removed until then stays removed.
func unfinishedPage(v *web.Visit) (web.Answer, error) {
	v, done := v.MoreTime()
	defer done()
	return deletionPage(v, web.FormErrors{Status: http.StatusConflict, General: []string{
		"There was more to remove than fits into one request. What is removed stays removed: send the form again " +
			"until it succeeds.",
	}})
}
