// Package app puts Ringback together: it opens the store that the options name, puts the address guard, the sender, the
// dispatcher and the API on top of it, runs them, and takes them apart in the reverse order.
//
// New acquires and starts nothing; Run blocks until its context ends, or something fails, and says why. Tests run the
// whole product in-process this way:
//
//	a, err := app.New(ctx, app.Options{Addr: "127.0.0.1:0", Store: "sqlite:" + file, AllowPrivate: true})
//	go func() { done <- a.Run(ctx) }()
//	http.Post("http://"+a.Addr()+"/v1/jobs", …)
package app
