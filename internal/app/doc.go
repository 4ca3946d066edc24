// Package app composes Ringback: it opens the configured store, wires the address guard, the sender, the dispatcher and
// the API on top of it, runs them, and tears them down in reverse order.
//
// New acquires resources and starts nothing. Run blocks until its context ends or a component fails, and returns the
// cause. Tests run the whole service in-process:
//
//	a, err := app.New(ctx, app.Options{Addr: "127.0.0.1:0", Store: "sqlite:" + file, AllowPrivate: true})
//	go func() { done <- a.Run(ctx) }()
//	http.Post("http://"+a.Addr()+"/v1/jobs", …)
package app
