// Package script assembles Lua scripts and runs them.
//
// A script is a .lua file of the package that uses it. Before it come the numbers that Go and Lua share, prelude.lua,
// and the files of the folder include that it names. Each script begins with a table of its keys, arguments and result.
// Most include keys.lua, whose keys and arguments NewCall lays out.
//
// The files in include are the Lua side of package layout: records, runs, queues, throttles, retention.
package script
