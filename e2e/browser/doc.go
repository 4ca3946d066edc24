// Package browser has only tests. They use Ringback as a person does, in a real browser: Debian's chromium, which
// chromedp starts with --headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update
// --disable-sync, and drives over a pipe. The browser resolves no host name but localhost, so a page that loads
// anything from elsewhere fails.
//
// All tests share one browser process. Each test has a profile (cookies, storage, cache) of its own.
package browser
