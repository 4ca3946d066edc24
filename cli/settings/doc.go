// Package settings finds the server that a command calls, and the token that it sends there.
//
// A context is a server with its token file and namespace, under a name. The contexts are in contexts.toml in the
// directory ringback of the user's configuration directory:
//
//	current = "prod"
//
//	[contexts.prod]
//	server = "https://ringback.internal"
//	token_file = "/home/anna/.config/ringback/prod.token"
//	namespace = "shop"
//
// A file .ringback.toml in the working directory, or the nearest directory above it, chooses one for a project:
//
//	context = "prod"
//	namespace = "shop"
//
// It names a context and nothing else, so that a directory that was downloaded cannot send a token to a server of its
// choice. For the same reason the token of a context is sent to the server of that context only.
package settings
