package respapi

import (
	"testing"
	"testing/synctest"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// TestMissingField refuses events that lack a field, and names it, alone and in a pipeline.
func TestMissingField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, true)
		file := must.Get(rules.Parse("rules.yaml", []byte("version: 1\nfields: {api_key: {header: X-API-Key, missing: refuse, hash: true}}\n"+
			"limits: [{name: keys, key: api_key, limit: 2 per 10m}, {name: clients, key: client, limit: 3 per 10m}]")))(t)
		must.Get(s.Engine.Replace(file, true))(t)
		c := s.dial()
		const missing = `[0 0 0 -1 0 "keys" 0 0 "" "api_key"]`
		for _, ask := range []string{"CHECK client 192.0.2.1", "CHECK client 192.0.2.1 RESERVE 1000", "CHECK client 192.0.2.1 COST 9"} {
			c.want(ask, missing)
		}
		c.want("CHECK client 192.0.2.1 api_key k", `[1 2 1 0 600000 "keys" 0]`)
		c.want("OUTCOME client 192.0.2.1 status 401", `[1 0 0 0 0 "" 0]`)
		c.want("TAKE keys k", `[1 2 0 0 600000 "keys" 0]`)
		c.want("PEEK clients 192.0.2.1", `[1 3 1 0 600000 "clients" 0]`)
		c.want("INFO rules", `"# Rules\r\nrules:2\r\nrules_reloads:1\r\nrules_state:ok\r\ncrawlers_verified:0\r\nlacking_keys:events=5,lacking=3,refused=3\r\n"`)
		c.want("MULTI", "+OK")
		c.want("CHECK client 192.0.2.1", "+QUEUED")
		c.want("EXEC", "["+missing+"]")
	})
}
