// Package settingspages has the console's section Settings: whose the token is and what server it is, tokens,
// namespaces, the settings in force of the process, and the doctor's checks of it.
package settingspages

import (
	"context"
	"embed"
	"html/template"

	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/doctor"
)

//go:embed all:templates
var files embed.FS

const (
	// section is the item of the navigation.
	section = "settings"
	// perPage bounds the rows of a list.
	perPage = 50
)

// Options are what the pages show that the API does not know.
type Options struct {
	// InForce are the settings of the process; none: they are not known.
	InForce []Setting
	// Check makes the doctor's checks of the process within 10 s; nil: it cannot be checked.
	Check func(context.Context) []doctor.Finding
}

// Setting is a setting in force. Secrets are not its value.
type Setting struct {
	Name, Value string
	// From is where it comes from: a flag, a variable, a line of a file, or default.
	From string
}

// readProcess is the action of the pages about the process itself. They show paths, addresses and stores of all
// namespaces, which concern the root alone, and no action of the API reads them. Reading namespaces needs the root,
// too.
var readProcess = access.ReadNamespaces

// pages is the state of the pages.
type pages struct {
	inForce []Setting
	checks  *checker
}

// New returns the pages.
func New(o Options) web.Pages {
	p := &pages{inForce: o.InForce}
	if o.Check != nil {
		p.checks = &checker{check: o.Check}
	}
	return web.Pages{
		Name:  "settingspages",
		Files: files,
		Funcs: template.FuncMap{
			"pending": (*namespaceRow).pending, "bytesOf": (*namespaceRow).bytesOf,
			"who": (*tokenRow).who, "usedText": (*tokenRow).usedText,
		},
		Routes: []web.Route{
			web.Get("settings", access.ReadService, p.settings),

			web.Get("settings/tokens", access.ReadTokens, tokens),
			web.Post("settings/tokens", access.CreateToken, createToken),
			web.Get("settings/tokens/{id}", access.ReadTokens, token),
			web.Post("settings/tokens/{id}/revoke", access.RevokeToken, revokeToken),

			web.Get("settings/namespaces", access.ReadNamespaces, namespaces),
			web.Post("settings/namespaces", access.PutNamespace, createNamespace),
			web.Get("settings/namespaces/{name}", access.ReadNamespaces, namespace),
			web.Post("settings/namespaces/{name}", access.PutNamespace, putNamespace),
			web.Get("settings/namespaces/{name}/delete", access.DeleteNamespace, confirmDeletion),
			web.Post("settings/namespaces/{name}/delete", access.DeleteNamespace, deleteNamespace),

			web.Get("settings/in-force", readProcess, p.settingsInForce),
			web.Get("settings/checks", readProcess, p.findings),
			web.Post("settings/checks", readProcess, p.runChecks),
		},
	}
}

// crumbs lead from the section to a page below it.
func crumbs(v *web.Visit, below ...web.Link) []web.Link {
	return append([]web.Link{{To: v.Path("settings"), Text: "Settings"}}, below...)
}
