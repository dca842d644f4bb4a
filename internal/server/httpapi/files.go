package httpapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/lately-go/lately/internal/server/console"
)

// A file is a file of the console with its header fields.
type file struct {
	data   []byte
	packed []byte // compressed, or nil if that is no shorter
	media  []string
	etag   []string
}

var media = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// readFiles returns the files of the console by name. They are few and small.
func readFiles(from fs.FS) (map[string]*file, error) {
	files := make(map[string]*file)
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		kind, ok := media[path.Ext(name)]
		if !ok {
			return fmt.Errorf("%s: unknown type: must be .html, .js, .css or .svg", name)
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		files[name] = &file{data, pack(data), []string{kind}, []string{`"` + hex.EncodeToString(sum[:16]) + `"`}}
		return nil
	})
	return files, err
}

func pack(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	w.Write(data)                                         // into memory, which has no errors
	w.Close()
	if b.Len() >= len(data)*9/10 {
		return nil
	}
	return b.Bytes()
}

func index(c *call) error { return c.sendFile("index.html") }

func consoleFile(c *call) error { return c.sendFile(strings.TrimPrefix(c.r.URL.Path, "/console/")) }

// pageHeader is the fields of files that other answers do not have, or have with other values.
var pageHeader = []field{
	{"Content-Security-Policy", []string{console.Policy}},
	{"Cross-Origin-Opener-Policy", []string{"same-origin"}},
	{"X-Frame-Options", []string{"DENY"}},
	{"Cache-Control", []string{"no-cache"}},
	{"Vary", []string{"Accept-Encoding"}},
}

func (c *call) sendFile(name string) error {
	f := c.s.files[name]
	if f == nil {
		return errPath
	}
	h := c.w.Header()
	setHeader(h, pageHeader)
	h["Etag"] = f.etag
	if strings.Contains(c.r.Header.Get("If-None-Match"), f.etag[0]) {
		c.begun(http.StatusNotModified)
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	data := f.data
	if f.packed != nil && strings.Contains(c.r.Header.Get("Accept-Encoding"), "gzip") {
		h["Content-Encoding"] = []string{"gzip"}
		data = f.packed
	}
	h["Content-Type"] = f.media
	c.begun(http.StatusOK)
	c.w.Write(data)
	return nil
}
