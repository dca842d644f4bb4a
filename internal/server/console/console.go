// Package console has the files of the server's web console.
//
// The files are plain: no framework, no build step, no external resource. They show the
// answers of the JSON API under v1/ and the events of v1/events. Clients choose the bytes
// of keys, so keys become text nodes and never markup, and characters that could hide or
// reorder text are escaped. [Policy] makes the browser enforce that.
//
// Serve index.html at the root of a path, and each file at console/NAME below it. All
// addresses in the files are relative to that root, so a proxy can serve it under any path.
package console

import (
	"embed"
	"io/fs"
)

//go:embed ui
var ui embed.FS

// Files has the files of the console by their names, without folders. It is read-only and
// safe for concurrent use.
var Files, _ = fs.Sub(ui, "ui") // no error for a valid path

// Policy is the Content-Security-Policy to serve with the files: no inline script or
// style, no external resource, no text that becomes markup.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
