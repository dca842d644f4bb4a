package server

import (
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// TestMixedLogs names the rules that judge the events of several formats without saying so.
func TestMixedLogs(t *testing.T) {
	web := followedLog{"/var/log/nginx/access.log", "clf", []string{"client", "path", "status", "user"}}
	web2 := followedLog{"/var/log/nginx/shop.log", "clf", web.fields}
	sshd := followedLog{"journal:ssh.service", "journald-json", []string{"client", "program", "reason", "user"}}
	const about = ` judges the events of logs of different formats, /var/log/nginx/access.log (clf) and journal:ssh.service (journald-json): ` +
		"if it is about one of them, add a line such as `log: \"/var/log/nginx/access.log\"` to its when"
	for rule, mixed := range map[string]bool{
		"key: client":                                        true,
		"key: [client/24, user]":                             true,
		`key: "path | client"`:                               true,
		"key: client, when: {user: root}":                    true,
		"key: client, when: {reason: login failed}":          false,
		"key: client, when: {status: 401}":                   false,
		"key: path":                                          false,
		"key: [client, path]":                                false,
		"key: client, when: {log: journal:ssh.service}":      false,
		"key: client, when: {format: '*'}":                   false,
		"key: client, when: {user: root, program: sshd}":     false,
		"key: client, when: {user: root, filter: roundcube}": false,
	} {
		f := must.Get(rules.Parse("rules.yaml", []byte("version: 1\nbans:\n  - {name: r, "+rule+", after: 5 hits in 1m, for: 1h}\n")))(t)
		var want []string
		if mixed {
			want = []string{`rule "r"` + about}
		}
		if got := mixedLogs(f.Limits, []followedLog{web, sshd}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
		if got := mixedLogs(f.Limits, []followedLog{web, web2}); got != nil {
			t.Errorf("%s, one format: %q", rule, got)
		}
		if got := mixedLogs(f.Limits, []followedLog{sshd}); got != nil {
			t.Errorf("%s, one log: %q", rule, got)
		}
	}
}
