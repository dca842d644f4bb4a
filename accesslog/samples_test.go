package accesslog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// samplesDir has samples of formats that are not shipped with this module.
const samplesDir = "../../shared/data/formats"

// samples has the detected format and the lines of each sample. A sample in a format without a name has none.
var samples = map[string]struct {
	format string
	lines  lineCounts
}{
	"crowdsec-aws-alb-logs.log":           {"alb", lineCounts{14, 0, 0}},
	"crowdsec-caddy-logs.log":             {"caddy", lineCounts{10, 1, 1}},
	"crowdsec-envoy.log":                  {"docker-json:envoy-json", lineCounts{6, 0, 4}},
	"crowdsec-http_dos_random_uri.log":    {"clf", lineCounts{66, 0, 0}},
	"crowdsec-tcpudp-flood-traefik.log":   {"text", lineCounts{0, 0, 0}},
	"crowdsec-traefik_json.log":           {"traefik-json", lineCounts{6, 0, 1}},
	"fail2ban-apache-botsearch.log":       {"messages", lineCounts{0, 0, 0}},
	"fail2ban-apache-noscript.log":        {"messages", lineCounts{0, 0, 0}},
	"fail2ban-nginx-botsearch.log":        {"clf", lineCounts{0, 0, 0}},
	"fail2ban-nginx-http-auth.log":        {"messages", lineCounts{0, 0, 0}},
	"fail2ban-nginx-limit-req.log":        {"messages", lineCounts{0, 0, 0}},
	"fail2ban-sshd.log":                   {"messages", lineCounts{0, 0, 0}},
	"matomo-alb.log":                      {"alb", lineCounts{1, 0, 0}},
	"matomo-amazon_cloudfront_rtmp.log":   {"cloudfront", lineCounts{2, 2, 0}},
	"matomo-amazon_cloudfront_web.log":    {"cloudfront", lineCounts{1, 2, 0}},
	"matomo-caddy_json.log":               {"caddy", lineCounts{3, 0, 0}},
	"matomo-common.log":                   {"clf", lineCounts{1, 0, 0}},
	"matomo-common_complete.log":          {"clf", lineCounts{0, 0, 0}},
	"matomo-common_encoding_big5.log":     {"clf", lineCounts{0, 0, 0}},
	"matomo-common_vhost.log":             {"clf", lineCounts{0, 0, 0}},
	"matomo-custom_regex_custom_date.log": {},
	"matomo-elb.log":                      {"elb", lineCounts{1, 2, 0}},
	"matomo-gandi.log":                    {"text", lineCounts{2, 0, 0}},
	"matomo-haproxy.log":                  {"haproxy", lineCounts{1, 0, 0}},
	"matomo-icecast2.log":                 {"clf", lineCounts{1, 0, 0}},
	"matomo-iis.log":                      {"w3c", lineCounts{1, 4, 0}},
	"matomo-iis_custom.log":               {"w3c", lineCounts{3, 7, 0}},
	"matomo-incapsula_w3c.log":            {"w3c", lineCounts{2, 4, 0}},
	"matomo-logs_to_tests.log":            {"clf", lineCounts{0, 0, 0}},
	"matomo-ncsa_extended.log":            {"clf", lineCounts{1, 0, 0}},
	"matomo-netscaler.log":                {"w3c", lineCounts{1, 4, 0}},
	"matomo-nginx_json.log":               {"text", lineCounts{0, 0, 0}},
	"matomo-ovh.log":                      {"clf", lineCounts{1, 0, 0}},
	"matomo-s3.log":                       {"s3", lineCounts{1, 0, 0}},
	"matomo-shoutcast.log":                {"w3c", lineCounts{1, 3, 0}},
	"matomo-splitted_date_and_time.log":   {"w3c", lineCounts{1, 1, 0}},
	"matomo-static_ignores.log":           {"clf", lineCounts{0, 0, 0}},
	"matomo-traefik_json.log":             {"traefik-json", lineCounts{1, 0, 0}},
}

// eachSample calls f for each sample, with its format and its log.
func eachSample(t *testing.T, f func(t *testing.T, name string, log []byte)) {
	paths, _ := filepath.Glob(filepath.Join(samplesDir, "*.log"))
	if len(paths) == 0 {
		t.Skip("SKIP samples of formats: there are none here")
	}
	for _, path := range paths {
		log := must.Get(os.ReadFile(path))(t)
		t.Run(filepath.Base(path), func(t *testing.T) { f(t, filepath.Base(path), log) })
	}
}

// Every sample is detected as its own format or as none, and its lines give the expected events.
func TestSamples(t *testing.T) {
	eachSample(t, func(t *testing.T, name string, log []byte) {
		want, known := samples[name]
		f, ok := accesslog.Detect(log)
		if !known || f.String() != want.format || ok != (want.format != "") {
			t.Fatalf("detected as %q, want %q", f, want.format)
		}
		if want.lines.parsed == 0 {
			return
		}
		got := readLog(t, log, f, accesslog.Options{}, func(*match.Event) {})
		if got != want.lines {
			t.Errorf("lines %+v, want %+v", got, want.lines)
		}
	})
}

// Where text reads a line of another format, it finds the client that the other finds.
func TestTextFindsTheClientsOfOtherFormats(t *testing.T) {
	text := newParser(t, "text", accesslog.Options{Year: 2018})
	check := func(f accesslog.Format, line []byte) {
		var ev, other match.Event
		p, _ := f.NewParser(accesslog.Options{Year: 2018})
		if !p.Parse(line, &other) || !text.Parse(line, &ev) || len(other.Get(match.Client)) == 0 {
			return
		}
		if got, want := string(ev.Get(match.Client)), string(other.Get(match.Client)); got != want {
			t.Errorf("client %q of %s, and %q of text, in %q", want, f, got, line)
		}
	}
	for _, n := range accesslog.NamedFormats() {
		f, _ := accesslog.ParseFormat(n.Name)
		if f, ok := f.Inside([]byte(n.Example)); ok {
			check(f, []byte(exampleLine0(n.Name)))
		}
	}
	eachSample(t, func(t *testing.T, name string, log []byte) {
		f, ok := accesslog.Detect(log)
		for line := range bytes.Lines(log) {
			if line = bytes.TrimRight(line, "\r\n"); ok {
				check(f, line)
			}
		}
	})
}

// No sample has more than a few good lines under a wrong format: a user who names the wrong format is warned.
func TestSamplesUnderOtherFormats(t *testing.T) {
	alike := map[string]string{"clf": "clf-quoted clf-vhost traefik messages", "traefik": "clf", "haproxy": "syslog stern"}
	eachSample(t, func(t *testing.T, name string, log []byte) {
		own := samples[name].format
		for _, other := range accesslog.Formats() {
			f, _ := accesslog.ParseFormat(other)
			f, ok := f.Inside(log)
			if !ok || own == "" || strings.HasPrefix(other, "text") || f.String() == own || strings.Contains(alike[own], other) {
				continue
			}
			if got := readLog(t, log, f, accesslog.Options{}, func(*match.Event) {}); got.parsed > 0 {
				t.Errorf("%d lines of a sample of %s are events of %s", got.parsed, own, other)
			}
		}
	})
}
