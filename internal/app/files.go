package app

import (
	"github.com/ringback/ringback/internal/fileread"
	"github.com/ringback/ringback/notify"
	"github.com/ringback/ringback/store/redis"
)

// A watchFunc registers a function that replaces tokens.
type watchFunc = func(replace func([]Secret))

// watchTokens has the functions that are registered called when a file of tokens changes; empty: there is none.
func (a *App) watchTokens(what, file string) watchFunc {
	if file == "" {
		return nil
	}
	var replaced []func([]Secret) // not changed once the App runs
	a.files.Add(func() error {
		text, _, err := fileread.ReadSecret(file)
		if err == nil {
			err = checkTokens(what, Secret(text))
		}
		if err != nil {
			return err
		}
		for _, replace := range replaced {
			replace(linesOf(Secret(text)))
		}
		return nil
	}, file)
	return func(replace func([]Secret)) { replaced = append(replaced, replace) }
}

// watchRoots has the sender trust the authorities of CAFile when it changes.
func (a *App) watchRoots(sender *notify.Sender) {
	if a.options.CAFile == "" {
		return
	}
	a.files.Add(func() error {
		roots, err := a.options.roots()
		if err == nil {
			sender.SetRoots(roots)
		}
		return err
	}, a.options.CAFile)
}

// watchCertificates has an open store use the files that its URL names when they change.
func (a *App) watchCertificates(n namedStore, e engine) {
	if s, ok := e.Store.(*redis.Store); ok && len(n.redis.Files()) > 0 {
		a.files.Add(s.Client.LoadFiles, n.redis.Files()...)
	}
}
