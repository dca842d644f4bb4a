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
	style := read(console.Files, "style.css") + read(ui, "ui/page.css")
	script := script()
	icon := base64.StdEncoding.EncodeToString([]byte(read(console.Files, "icon.svg")))
	_, err = strings.NewReplacer(
		"{policy}", policy(script, style), "{zone}", html.EscapeString(zone.String()), "{icon}", icon,
		"{style}", style, "{report}", string(data), "{script}", script,
	).WriteString(w, read(ui, "ui/page.html"))
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

// read returns an embedded file.
func read(files fs.FS, name string) string {
	b, err := fs.ReadFile(files, name)
	if err != nil {
		panic(err) // a mistake here, which every test finds
	}
	return string(b)
}

// linkage is the statements of a module that name others.
var linkage = regexp.MustCompile(`(?m)^import [^;]*;\n|^export `)

// script returns all modules as one.
func script() string {
	var all strings.Builder
	for _, name := range consoleScripts {
		all.WriteString(read(console.Files, name))
	}
	for _, name := range ownScripts {
		all.WriteString(read(ui, "ui/"+name))
	}
	return linkage.ReplaceAllString(all.String(), "")
}
