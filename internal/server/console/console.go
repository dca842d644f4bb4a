// Package console is the server's web console: the files of it, and nothing that
// runs in the server.
//
// The files are plain: no framework, no build step, nothing fetched from anywhere
// else. They draw what the JSON API under v1/ answers, and what the event stream
// v1/events tells. Keys are bytes that strangers chose, so they become text nodes,
// with what could hide or reorder text written out, and never markup; [Policy] has
// the browser hold to that.
//
// Serve index.html at the root of a path, and each file at console/NAME below it.
// All addresses in the files are relative to that root, so a proxy may put it
// anywhere.
package console

import (
	"embed"
	"io/fs"
)

//go:embed ui
var ui embed.FS

// Files has the files of the console by their names, index.html first to be asked
// for. It has no folders. It is read-only and safe for concurrent use.
var Files, _ = fs.Sub(ui, "ui") // no error for a valid path

// Policy is the Content-Security-Policy under which the console works, and should be
// served: no inline script or style, nothing from elsewhere, no text that becomes
// markup. The tests drive the console under it.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
