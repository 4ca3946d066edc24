// Package cli is the part of the command line that calls a server: everything that the API does, and a few calculations
// that need no server.
//
// Commands are structs for kong. Most have no code: the tag call of a command has the method and the path of its
// request, in which {name} is an argument. Flags are parameters of the query if the method is GET, else members of the
// body, under their names with _ instead of -. Tags change that:
//
//	call    the request: "GET /v1/topics/{topic}"
//	show    the view in which the items of the answer are listed (views.go); without it the answer is one thing
//	create  what does not exist is put with the same settings
//	in      where a flag goes: query, body, data (a job's body), headers, assignments, file, revision (If-Match), none
//	field   the name of the parameter or the member
//
// The others have a method RunCommand, which gets the session and the request of the command (environment.go), or its
// printer if it calls no server.
//
// What a command, a flag or an argument says is the comment of its field, which make generate copies to texts.go: first
// the help. An indented line is an example that works. Others begin with a label:
//
//	Asks:     the question that is asked on a terminal, and that --yes answers
//	Done:     what is printed for people instead of the answer; {name} is a member of the answer, or an argument
//	Running:  the same for a job that is running
//
// Errors become exit codes in exit.go. The package imports no store: commands see what any client sees.
package cli
