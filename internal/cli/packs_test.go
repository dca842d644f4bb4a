package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// packs returns the rule packs in examples/packs.
func packs(t *testing.T) (all []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "examples", "packs", "*.yaml"))
	for _, path := range found {
		if !strings.HasSuffix(path, ".test.yaml") {
			all = append(all, path)
		}
	}
	if err != nil || len(all) < 5 {
		t.Fatalf("the packs are %q, %v", all, err)
	}
	return all
}

// TestPacks runs the tests of each rule pack, and starts a server with all of them as one set of rules, without a warning.
func TestPacks(t *testing.T) {
	var flags []string
	for _, path := range packs(t) {
		flags = append(flags, "--rules", path)
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"test", path}, nil, &out, &errs); code != 0 || errs.Len() > 0 || !strings.Contains(out.String(), ", 0 failed") {
			t.Errorf("%s: exit code %d\n%s%s", path, code, &out, &errs)
		}
	}
	s := serve(t, flags...)
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if log := s.log.String(); strings.Contains(log, "level=WARN") {
		t.Errorf("it begins with warnings:\n%s", log)
	}
}

// TestPacksOnLogs follows a log of sshd, and one of a web server, with the packs for them.
func TestPacksOnLogs(t *testing.T) {
	var sshd, web strings.Builder
	for i := range 6 {
		fmt.Fprintf(&sshd, "Mar  2 13:5%d:01 host sshd[71]: pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=192.0.2.1  user=root\n", i)
		fmt.Fprintf(&sshd, "Mar  2 13:5%d:02 host sshd[71]: Failed password for root from 192.0.2.1 port 4%d ssh2\n", i, i)
		fmt.Fprintf(&sshd, "Mar  2 13:5%d:03 host sshd[72]: Accepted password for ada from 192.0.2.2 port 4%d ssh2\n", i, i)
		fmt.Fprintf(&web, "192.0.2.1 - - [02/Mar/2026:13:5%d:02 +0000] \"GET /.git/%d HTTP/1.1\" 404 5 \"-\" \"curl\"\n", i, i)
		fmt.Fprintf(&web, "192.0.2.2 - - [02/Mar/2026:13:5%d:03 +0000] \"GET /page/%d HTTP/1.1\" 404 5 \"-\" \"curl\"\n", i, i)
	}
	for _, c := range []struct{ log, format, want string }{
		{sshd.String(), "messages", "13:54:02Z banned  sshd-password 192.0.2.1"},
		{web.String(), "clf", "13:52:02Z banned  scan-paths 192.0.2.1"},
	} {
		var flags []string
		for _, path := range packs(t) {
			flags = append(flags, "--rules", path)
		}
		log := filepath.Join(t.TempDir(), "log")
		appendTo(t, log, c.log)
		for _, args := range [][]string{{"replay", "--year", "2026"}, {"explain", "--year", "2026", "--key", "192.0.2.1"}} {
			var out, errs bytes.Buffer
			rule := strings.Fields(c.want)[2]
			if code := run(t.Context(), slices.Concat(args, []string{"--format", c.format}, flags, []string{log}), nil, &out, &errs); code > 1 || !strings.Contains(out.String(), rule) { // 1: rules about other logs
				t.Errorf("%s: exit code %d\n%s%s", args[0], code, &out, &errs)
			}
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), slices.Concat([]string{"follow", "--dry-run", "--tz", "UTC"}, flags, []string{"--", "-=" + c.format}), strings.NewReader(c.log), &out, &errs)
		if got := out.String(); code != 0 || strings.Count(got, "\n") != 1 || !strings.Contains(got, c.want) {
			t.Errorf("%s: exit code %d, got\n%s%s\nwant %s", c.format, code, got, &errs, c.want)
		}
	}
}
