// Package replaypage writes the report of a replay as a page for a browser.
//
// The page is one file. It has the report's JSON and a program that draws it, and needs
// nothing else: its policy forbids every request, and every script and style but its own.
// Clients choose the bytes of keys, so keys become text and never markup, as in the
// console, whose colours, formats and escaping of text the page shares.
package replaypage

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/server/console"
	"github.com/lately-go/lately/replay"
)

//go:embed ui
var ui embed.FS

// The files of the page, in the order in which they need each other.
var (
	consoleScripts = []string{"dom.js", "format.js", "parts.js"}
	ownScripts     = []string{"times.js", "keys.js", "timeline.js", "rules.js", "limits.js", "lists.js", "page.js"}
)

// Write writes the page of a report, with times in a zone.
func Write(w io.Writer, report *replay.Report, zone *time.Location) error {
	data, err := json.Marshal(report) // escapes what could end a script: <, > and &
	if err != nil {
		return err
	}
	files := reader{}
	style := files.read(console.Files, "style.css") + files.read(ui, "ui/page.css")
	script := files.script()
	icon := base64.StdEncoding.EncodeToString([]byte(files.read(console.Files, "icon.svg")))
	page := files.read(ui, "ui/page.html")
	if files.err != nil {
		return files.err
	}
	_, err = strings.NewReplacer(
		"{policy}", policy(script, style), "{zone}", html.EscapeString(zone.String()), "{icon}", icon,
		"{style}", style, "{report}", string(data), "{script}", script,
	).WriteString(w, page)
	return err
}

// policy returns the Content-Security-Policy of a page with that script and style.
func policy(script, style string) string {
	return fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'; "+
		"require-trusted-types-for 'script'; trusted-types 'none'", hash(script), hash(style))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// A reader reads embedded files, and keeps the first error.
type reader struct{ err error }

func (r *reader) read(files fs.FS, name string) string {
	b, err := fs.ReadFile(files, name)
	if r.err == nil {
		r.err = err
	}
	return string(b)
}

// linkage is the statements of a module that name others.
var linkage = regexp.MustCompile(`(?m)^import [^;]*;\n|^export `)

// script returns all modules as one.
func (r *reader) script() string {
	var all strings.Builder
	for _, name := range consoleScripts {
		all.WriteString(r.read(console.Files, name))
	}
	for _, name := range ownScripts {
		all.WriteString(r.read(ui, "ui/"+name))
	}
	return linkage.ReplaceAllString(all.String(), "")
}
