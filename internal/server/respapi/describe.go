package respapi

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// serverCommands describe the server.
var serverCommands = []command{
	{
		name: "command", usage: "[COUNT|LIST|INFO [name ...]|DOCS [name ...]]", summary: "The commands",
		group: groupServer, role: access.Read, least: 1, handle: describe,
	},
	{name: "info", usage: "[section ...]", summary: "The state of the server, in sections", group: groupServer, role: access.Read, least: 1, handle: info},
	{name: "config", usage: "GET pattern [pattern ...]", summary: "Returns an empty list, for clients that send it", group: groupServer, role: access.Read, least: 3, handle: configure},
}

// describe answers COMMAND, from the table.
func describe(c *conn, args [][]byte) error {
	word, names := []byte("info"), args[1:]
	if len(args) > 1 {
		word, names = args[1], args[2:]
	}
	switch all := c.s.commands.all; {
	case isWord(word, "count") && len(names) == 0:
		c.w.Int(int64(len(all)))
	case isWord(word, "list") && len(names) == 0:
		c.w.Array(len(all))
		for i := range all {
			c.w.BulkString(all[i].name)
		}
	case isWord(word, "info"):
		found := c.s.commands.choose(names)
		c.w.Array(len(found))
		for _, cmd := range found {
			c.describe(cmd)
		}
	case isWord(word, "docs"):
		found := slices.DeleteFunc(c.s.commands.choose(names), func(cmd *command) bool { return cmd == nil })
		c.w.Map(len(found))
		for _, cmd := range found {
			c.document(cmd)
		}
	default:
		return badArg("'%.32s': must be COMMAND, COMMAND COUNT, LIST, INFO or DOCS", word)
	}
	return nil
}

// choose returns the commands of these names, with nil for an unknown one, or all.
func (t *commandTable) choose(names [][]byte) (found []*command) {
	for _, name := range names {
		found = append(found, t.named(name))
	}
	if len(names) == 0 {
		for i := range t.all {
			found = append(found, &t.all[i])
		}
	}
	return found
}

// describe writes the ten elements of Redis 7: name, arity, flags, first and last key,
// step between keys, categories, tips, key specifications and subcommands.
func (c *conn) describe(cmd *command) {
	if cmd == nil {
		c.w.NullArray()
		return
	}
	flags := []string{"fast", "readonly"}
	if cmd.write {
		flags[1] = "write"
	}
	if cmd.role == access.None {
		flags = append(flags, "no_auth")
	}
	if cmd.group == groupPubSub {
		flags = append(flags, "pubsub")
	}
	c.w.Array(10)
	c.w.BulkString(cmd.name)
	c.w.Int(int64(cmd.arity()))
	c.w.Set(len(flags))
	for _, f := range flags {
		c.w.Simple(f)
	}
	c.w.Ints(int64(cmd.key), int64(cmd.key), int64(min(cmd.key, 1)))
	c.w.Set(1)
	c.w.Simple("@" + cmd.group)
	for range 3 {
		c.w.Array(0)
	}
}

// firstVersion is the version of Lately that has all commands first, in COMMAND DOCS.
const firstVersion = "0.1.0"

// document writes the help for a command.
func (c *conn) document(cmd *command) {
	c.w.BulkString(cmd.name)
	c.w.Map(6)
	c.strings("summary", cmd.summary, "since", firstVersion, "group", cmd.group, "usage", cmd.line(),
		"role", max(cmd.role, cmd.argsRole).String(), "arguments")
	if cmd.usage == "" {
		c.w.Array(0)
		return
	}
	c.w.Array(1) // as one: clients show it as it is
	c.w.Map(3)
	c.strings("name", cmd.usage, "type", "string", "display_text", cmd.usage)
}

// strings writes several bulk strings: elements, or keys and values of a map.
func (c *conn) strings(texts ...string) {
	for _, text := range texts {
		c.w.BulkString(text)
	}
}

// info answers INFO: lines in sections, as Redis has them.
func info(c *conn, args [][]byte) error {
	var b strings.Builder
	for _, section := range [...]struct {
		name string
		text func(s *Server) string
	}{
		{"Server", (*Server).infoServer},
		{"Clients", (*Server).infoClients},
		{"Memory", (*Server).infoMemory},
		{"Stats", (*Server).infoStats},
		{"Replication", func(*Server) string { return "role:master\r\n" }},
		{"Rules", (*Server).infoRules},
		{"Store", (*Server).infoStore},
	} {
		if !wanted(args[1:], section.name) || section.name == "Store" && c.s.Store == nil {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		fmt.Fprintf(&b, "# %s\r\n%s", section.name, section.text(c.s))
	}
	c.w.Text(b.String())
	return nil
}

func wanted(names [][]byte, section string) bool {
	for _, n := range names {
		if isWord(n, section) || isWord(n, "all") || isWord(n, "default") || isWord(n, "everything") {
			return true
		}
	}
	return len(names) == 0
}

func (s *Server) infoServer() string {
	return fmt.Sprintf("server_name:lately\r\nlately_version:%s\r\nredis_mode:standalone\r\nos:%s %s\r\ngo_version:%s\r\nprocess_id:%d\r\nuptime_in_seconds:%d\r\n",
		s.Version, runtime.GOOS, runtime.GOARCH, runtime.Version(), os.Getpid(), int64(time.Since(s.started)/time.Second))
}

func (s *Server) infoClients() string {
	return fmt.Sprintf("connected_clients:%d\r\nmaxclients:%d\r\npubsub_clients:%d\r\n", s.Open(), s.MaxConnections, s.Subscribers.Load())
}

func (s *Server) infoMemory() string {
	memory := s.Engine.Status().Memory
	return fmt.Sprintf("limits_bytes:%d\r\nlimits_reserved:%d\r\nlimits_budget:%d\r\ncounters_bytes:%d\r\n", memory.Bytes, memory.Reserved, memory.Budget, memory.Counters)
}

func (s *Server) infoStats() string {
	d := s.Engine.Totals()
	_, accepted, refused := s.Conns.Counts()
	return fmt.Sprintf("loading:0\r\ntotal_connections_received:%d\r\nrejected_connections:%d\r\ntotal_commands_processed:%d\r\n"+
		"decisions_allowed:%d\r\ndecisions_refused:%d\r\ndecisions_banned:%d\r\ndecisions_unmatched:%d\r\nerrors:%d\r\nrequests_unauthorized:%d\r\nclients_cut:%d\r\npanics:%d\r\n",
		accepted, refused, s.Requests.Load(), d.Allowed, d.Refused, d.Banned, d.Unmatched, d.Errors, s.Unauthorized.Load(), s.Cut.Load(), s.Panics.Load())
}

func (s *Server) infoRules() string {
	status := s.Engine.Status()
	state := "ok"
	if status.Rules.Error != "" {
		state = "the last reload failed"
	}
	infos := s.Engine.RuleInfos()
	text := fmt.Sprintf("rules:%d\r\nrules_reloads:%d\r\nrules_state:%s\r\ncrawlers_verified:%d\r\n", len(infos), status.Rules.Reloads, state, status.Crawlers.Verified)
	for i := range infos {
		if r := infos[i].Stats; r != nil && r.Lacking > 0 {
			text += fmt.Sprintf("lacking_%s:events=%d,lacking=%d,refused=%d\r\n", infos[i].Name, r.Events(), r.Lacking, r.LackingRefused)
		}
	}
	return text
}

func (s *Server) infoStore() string {
	x := s.Store()
	return fmt.Sprintf("store_up:%d\r\nstore_latency_us:%d\r\nstore_failures:%d\r\nstore_sync_age_ms:%d\r\nstore_rules_hash:%s\r\nstore_nodes:%d\r\nstore_nodes_other_rules:%d\r\n",
		oneIf(x.Up), x.Latency, x.Failures, x.SyncAge, x.RulesHash, x.Nodes, x.OtherRules)
}
