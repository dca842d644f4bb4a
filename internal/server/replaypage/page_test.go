package replaypage_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/replaypage"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

// evil are keys as strangers choose them.
var evil = []string{
	`<img src=x onerror="window.owned=1">`, `</script><script>window.owned=1</script>`, `<!--<script>`, `{script}{report}`, "\u202egnp.exe\u2066\x1b[31m\x00end", "a\u2028b\u2029c",
	`"><svg onload=window.owned=1>`, "javascript:window.owned=1", "a&amp;b", strings.Repeat("k<b>", 256), "z̸̡̢̛̙̙a̶l̷g̸o̷", `\xff`, "  two  spaces  ", "bytes\xff\xfe</script>\x1b",
}

// what are the rules of most tests.
const what = `version: 1
limits:
  - {name: per-client, key: client, limit: 3 per 10s, ban: {after: 4 refusals in 1m, for: 30s}}
  - {name: shadowed, key: client, limit: 1 per 1s, mode: shadow}
bans:
  - {name: flood, key: client, after: 9 hits in 1m, for: 2m}
hot:
  - {name: hot-client, key: client, threshold: 6 per 1m}
`

// hostileReport is a report of a log whose keys, file and bad lines are hostile.
func hostileReport(t *testing.T) *replay.Report {
	t.Helper()
	var log bytes.Buffer
	for i, key := range evil {
		for n := range 4 + i {
			fmt.Fprintf(&log, "%d\t%s\n", 1_772_452_800+40*i+2*n, key)
		}
	}
	log.WriteString("</script><img src=x onerror=window.owned=1> is no line\n")
	log.WriteString("\xff\xfe is none either\n")
	path := filepath.Join(t.TempDir(), `<b onclick="window.owned=1">&amp;.log`)
	must.Do(t, os.WriteFile(path, log.Bytes(), 0o600))
	file := must.Get(rules.Parse("rules.yaml", []byte(what)))(t)
	return run(t, replay.Config{Files: []string{path}, Format: "tsv:time=1@s,client=2", Rules: file})
}

func run(t *testing.T, c replay.Config) *replay.Report {
	t.Helper()
	return must.Get(replay.Run(t.Context(), c))(t)
}

// sampleReport is a report of the project's own generated log.
func sampleReport(t *testing.T, c replay.Config, whatIfs ...string) *replay.Report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	var log bytes.Buffer
	must.Get(accesslogtest.Write(&log, accesslogtest.Config{}))(t)
	must.Do(t, os.WriteFile(path, log.Bytes(), 0o600))
	for i := 0; i < len(whatIfs); i += 2 {
		w := must.Get(replay.ParseWhatIf(replay.Kind(whatIfs[i]), whatIfs[i+1]))(t)
		c.WhatIfs = append(c.WhatIfs, w)
	}
	c.Files = []string{path}
	r := run(t, c)
	r.Files = []string{"access.log"}
	return r
}

func pageOf(t *testing.T, r *replay.Report) string {
	t.Helper()
	var page strings.Builder
	must.Do(t, replaypage.Write(&page, r, time.UTC))
	return page.String()
}

var elements = regexp.MustCompile(`(?s)<(script|style)\b([^>]*)>(.*?)</(?:script|style)>`)

// TestPageHasTheReport finds exactly the report's JSON in the page, whatever keys it has, and
// one program and one style, which the policy names.
func TestPageHasTheReport(t *testing.T) {
	for name, r := range map[string]*replay.Report{
		"hostile": hostileReport(t), "sample": sampleReport(t, replay.Config{Compare: true}, "limit", "60/1m"), "empty": {},
	} {
		page := pageOf(t, r)
		policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`).FindStringSubmatch(page)
		found := elements.FindAllStringSubmatch(page, -1)
		if len(found) != 3 || policy == nil || strings.Count(strings.ToLower(page), "<script") != 2 || strings.Count(strings.ToLower(page), "</script") != 2 || strings.Contains(page, "<!--") {
			t.Fatalf("%s: %d elements, policy %q", name, len(found), policy)
		}
		style, data, script := found[0], found[1], found[2]
		var got, want any
		marshaled := must.Get(json.Marshal(r))(t)
		if err := json.Unmarshal([]byte(data[3]), &got); err != nil {
			t.Fatalf("%s: the report is not JSON: %v", name, err)
		}
		must.Do(t, json.Unmarshal(marshaled, &want))
		if !reflect.DeepEqual(got, want) || data[1] != "script" || data[2] != ` type="application/json" id="report"` {
			t.Errorf("%s: the page has another report", name)
		}
		if strings.ContainsAny(data[3], "<>&\u2028\u2029\x00\x1b") {
			t.Errorf("%s: something in the report is not escaped", name)
		}
		for directive, text := range map[string]string{"script-src": script[3], "style-src": style[3]} {
			sum := sha256.Sum256([]byte(text))
			if want := fmt.Sprintf("%s 'sha256-%s';", directive, base64.StdEncoding.EncodeToString(sum[:])); !strings.Contains(policy[1], want) {
				t.Errorf("%s: the policy has no %s: %s", name, want, policy[1])
			}
		}
		for _, part := range []string{"default-src 'none';", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"} {
			if !strings.Contains(policy[1], part) {
				t.Errorf("%s: the policy has no %s", name, part)
			}
		}
		if strings.Contains(policy[1], "unsafe") || strings.Contains(policy[1], "http") || strings.Contains(policy[1], "*") {
			t.Errorf("%s: the policy is too wide: %s", name, policy[1])
		}
	}
}

// TestPageHasNoExternalReferences has no address, no statement that loads something, and nothing
// that makes markup of text.
func TestPageHasNoExternalReferences(t *testing.T) {
	page := strings.ReplaceAll(pageOf(t, &replay.Report{}), "http://www.w3.org/2000/svg", "")
	forbidden := []string{
		`(?i)https?:`, `(?i)\ssrc\s*=`, `@import`, `url\((?:[^#]|$)`, `(?m)^\s*(?:import|export)\b`, `\bimport\(`, `\bfetch\(`, `XMLHttpRequest`, `WebSocket`, `EventSource`, `sendBeacon`,
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|createContextualFragment`, `\beval\b`, `\bnew Function\b`, `<[a-z][^>]*\son[a-z]+\s*=`, `<[a-z][^>]*\sstyle\s*=`,
	}
	for _, pattern := range forbidden {
		if at := regexp.MustCompile(pattern).FindString(page); at != "" {
			t.Errorf("the page has %q", at)
		}
	}
	if refs := regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1); len(refs) != 2 || refs[1][1] != "#main" || !strings.HasPrefix(refs[0][1], "data:image/svg+xml;base64,") {
		t.Errorf("references: %.200q", refs)
	}
	if strings.Contains(page, "{zone}") || !strings.Contains(page, `data-zone="UTC"`) {
		t.Error("the page has no zone")
	}
}
