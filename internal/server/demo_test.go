package server

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/server/follow"
)

// A demo is separate from real clients: a setting that would mix them is an error.
func TestDemoRefuses(t *testing.T) {
	for want, c := range map[string]Config{
		"demo: set with rules: must be without":                                       {RulesFiles: []string{"rules.yaml"}},
		"demo: set with follow: must be without":                                      {Follow: []follow.Log{{Path: "access.log"}}},
		"demo: set with data: must be without":                                        {Data: "data"},
		"demo: set with store: must be without":                                       {Store: "redis://localhost"},
		"demo: set with nftables, deny-file":                                          {Enforce: enforce.Targets{NFTables: true}},
		"demo: http is off":                                                           {HTTP: Off},
		"http 0.0.0.0:80, which other machines can reach: must be a loopback address": {HTTP: "0.0.0.0:80", NoTokens: true, NoTLS: true},
		"resp :7379, which other machines can reach: must be a loopback address":      {RESP: ":7379", TokenFile: "t", NoTLS: true},
	} {
		c.Demo = true
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if err := (Config{Demo: true, RESP: Off, HTTP: "localhost:0"}).Validate(); err != nil {
		t.Error(err)
	}
}
