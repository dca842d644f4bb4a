package follow

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
)

// TestFormats has the given formats, and those of existing files; not those of rotated files.
func TestFormats(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("access.log"), `192.0.2.1 - - [17/Apr/2024:06:25:06 +0000] "GET /a,b HTTP/1.1" 200 5`)
	write(t, path("access.log.1"), `192.0.2.1 - - [16/Apr/2024:06:25:06 +0000] "GET /a,b HTTP/1.1" 200 5`)
	write(t, path("auth.log"), "2024-04-17T06:25:07+00:00 host,a sshd[1]: Failed password for root from 192.0.2.2 port 22 ssh2")
	write(t, path("empty.log"), ",")
	packed := must.Get(os.Create(path("old.log.gz")))(t)
	must.Do(t, gzip.NewWriter(packed).Close())
	packed.Close()
	clf := must.Get(accesslog.ParseFormat("clf"))(t)
	for _, c := range []struct {
		log  Log
		want []string
	}{
		{Log{Path: path("*.log*")}, []string{path("access.log") + " clf", path("auth.log") + " messages"}},
		{Log{Path: dir}, []string{path("access.log") + " clf", path("auth.log") + " messages"}},
		{Log{Path: path("auth.log"), Format: clf}, []string{path("auth.log") + " clf"}},
		{Log{Path: path("later.log")}, nil},
		{Log{Path: path("later.log"), Format: clf}, []string{path("later.log") + " clf"}},
		{Log{Path: "-"}, nil},
		{Log{Path: "-", Format: clf}, []string{"- clf"}},
		{Log{Path: "journal:ssh.service"}, []string{"journal:ssh.service journald-json"}},
		{Log{Path: "journal:nginx", Format: clf}, []string{"journal:nginx journald-json:clf"}},
	} {
		var got []string
		for _, l := range Formats([]Log{c.log}) {
			got = append(got, l.Path+" "+l.Format.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.log.Path, got, c.want)
		}
	}
}
