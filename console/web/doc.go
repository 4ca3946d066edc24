// Package web has what the pages of the console share: the visit that a page answers, its answers, its routes, and the
// functions of its templates.
//
// A package of pages has a function New that returns Pages: their routes and their templates. The console serves them:
// it finds out who visits, refuses what the role of their token does not allow, renders the answer, and renders live
// blocks again while somebody watches.
//
// # Templates
//
// Each file templates/NAME.html is a page, the view NAME. It defines the template "content", whose data is a *View, and
// may use templates of files that begin with an underscore. A template "live-NAME" is a live block: {{live "NAME" .}}
// in "content" renders it in an element, and the console renders it again, with new data of the same route, while the
// page is open.
//
// Pages work without JavaScript: links, and forms whose POST is answered with a redirect. Links are relative, by
// View.Path, so the console works below any prefix of paths that a proxy removes.
package web
