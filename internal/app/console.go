package app

import (
	"net/http"

	"github.com/ringback/ringback/console"
	"github.com/ringback/ringback/console/deadpages"
	"github.com/ringback/ringback/console/jobpages"
	"github.com/ringback/ringback/console/nowpage"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/schedulepages"
	"github.com/ringback/ringback/console/settingspages"
	"github.com/ringback/ringback/console/topicpages"
	"github.com/ringback/ringback/console/trypage"
	"github.com/ringback/ringback/console/web"
)

// console returns what makes the console of an API's routes; nil: there is none. watchTokens is
// console.Options.WatchRootTokens.
func (a *App) console(
	watchTokens watchFunc,
) func(routes http.Handler, onShutdown func(func()) (stop func() bool)) http.Handler {
	if a.options.NoConsole {
		return nil
	}
	return func(routes http.Handler, onShutdown func(func()) (stop func() bool)) http.Handler {
		return console.New(console.Options{
			API: routes, RootTokens: a.options.RootTokens(), WatchRootTokens: watchTokens, OnShutdown: onShutdown,
			Pages: a.consolePages(), MaxBody: a.options.MaxBody,
			Version: a.options.Version, Logger: a.options.Logger,
		})
	}
}

// consolePages returns the pages of the console.
func (a *App) consolePages() []web.Pages {
	answers := new(recent.Answers)
	return []web.Pages{
		jobpages.New(answers),
		deadpages.New(),
		nowpage.New(answers),
		schedulepages.New(),
		settingspages.New(settingspages.Options{InForce: a.options.InForce, Check: a.check}),
		topicpages.New(answers),
		trypage.New(a.options.Inbox),
	}
}
