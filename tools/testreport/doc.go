// Command testreport prints what go test -json reports: a line for each package as it ends, what still runs when
// nothing ends for a while, and at the end, within twenty lines, each failed test with its reason and the command that
// runs it alone. Everything that the tests printed is in a file.
//
// Its arguments are files, usually pipes, which it reads side by side to their ends. It exits with 1 if a test failed,
// if a package could not be built, or if fewer packages ended than were announced.
package main
