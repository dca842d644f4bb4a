package respapi

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// describe answers COMMAND, from the table.
func describe(c *conn, args [][]byte) error {
	all := c.s.commands.all
	if len(args) == 1 {
		c.w.Array(len(all))
		for _, cmd := range all {
			c.describe(cmd)
		}
		return nil
	}
	word, names := args[1], args[2:]
	switch {
	case isWord(word, "count") && len(names) == 0:
		c.w.Int(int64(len(all)))
	case isWord(word, "list") && len(names) == 0:
		c.w.Array(len(all))
		for _, cmd := range all {
			c.w.BulkString(cmd.name)
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
		return badArg("'%.32s' is not known; allowed are COMMAND, COMMAND COUNT, LIST, INFO and DOCS", word)
	}
	return nil
}

// choose returns the commands of these names, nil for one that there is not, or all.
func (x *index) choose(names [][]byte) []*command {
	if len(names) == 0 {
		return slices.Clone(x.all)
	}
	found := make([]*command, len(names))
	for i, name := range names {
		found[i] = x.named(name)
	}
	return found
}

// describe writes the ten elements that Redis 7 has: name, arity, flags, places of
// keys, categories, tips, key specifications and subcommands.
func (c *conn) describe(cmd *command) {
	if cmd == nil {
		c.w.NullArray()
		return
	}
	flags := []string{"fast"}
	if cmd.write {
		flags = append(flags, "write")
	} else {
		flags = append(flags, "readonly")
	}
	if cmd.said {
		flags = append(flags, "no_auth")
	}
	if cmd.group == telling {
		flags = append(flags, "pubsub")
	}
	c.w.Array(10)
	c.w.BulkString(cmd.name)
	c.w.Int(int64(cmd.arity()))
	c.w.Set(len(flags))
	for _, f := range flags {
		c.w.Simple(f)
	}
	step := 0
	if cmd.key > 0 {
		step = 1
	}
	c.w.Int(int64(cmd.key))
	c.w.Int(int64(cmd.key))
	c.w.Int(int64(step))
	c.w.Set(1)
	c.w.Simple("@" + cmd.group)
	for range 3 {
		c.w.Array(0)
	}
}

// document writes the help for a command.
func (c *conn) document(cmd *command) {
	role := max(cmd.need, cmd.needArgs).String()
	c.w.BulkString(cmd.name)
	c.w.Map(6)
	for _, pair := range [...][2]string{
		{"summary", cmd.summary}, {"since", "1.0.0"}, {"group", cmd.group}, {"usage", cmd.line()}, {"role", role},
	} {
		c.w.BulkString(pair[0])
		c.w.BulkString(pair[1])
	}
	c.w.BulkString("arguments")
	if cmd.usage == "" {
		c.w.Array(0)
		return
	}
	c.w.Array(1) // as one: clients show it as it is
	c.w.Map(3)
	for _, pair := range [...][2]string{{"name", cmd.usage}, {"type", "string"}, {"display_text", cmd.usage}} {
		c.w.BulkString(pair[0])
		c.w.BulkString(pair[1])
	}
}

// info answers INFO: lines in sections, as Redis has them.
func info(c *conn, args [][]byte) error {
	var b strings.Builder
	for _, section := range [...]struct {
		name  string
		write func(s *Server, b *strings.Builder)
	}{
		{"Server", (*Server).infoServer},
		{"Clients", (*Server).infoClients},
		{"Memory", (*Server).infoMemory},
		{"Stats", (*Server).infoStats},
		{"Replication", func(_ *Server, b *strings.Builder) { b.WriteString("role:master\r\n") }},
		{"Rules", (*Server).infoRules},
	} {
		if !wanted(args[1:], section.name) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		fmt.Fprintf(&b, "# %s\r\n", section.name)
		section.write(c.s, &b)
	}
	c.w.Text(b.String())
	return nil
}

func wanted(names [][]byte, section string) bool {
	for _, n := range names {
		if isWord(n, strings.ToLower(section)) || isWord(n, "all") || isWord(n, "default") || isWord(n, "everything") {
			return true
		}
	}
	return len(names) == 0
}

func (s *Server) infoServer(b *strings.Builder) {
	fmt.Fprintf(b, "server_name:lately\r\nlately_version:%s\r\nredis_mode:standalone\r\nos:%s %s\r\ngo_version:%s\r\nprocess_id:%d\r\nuptime_in_seconds:%d\r\n",
		s.config.Version, runtime.GOOS, runtime.GOARCH, runtime.Version(), os.Getpid(), int64(time.Since(s.started)/time.Second))
}

func (s *Server) infoClients(b *strings.Builder) {
	t := s.Stats()
	fmt.Fprintf(b, "connected_clients:%d\r\nmaxclients:%d\r\npubsub_clients:%d\r\n", t.Connections, s.config.MaxConnections, t.Subscribers)
}

func (s *Server) infoMemory(b *strings.Builder) {
	limits := s.engine.Status().Limits
	counters := int64(0)
	for c := range s.engine.Counters() {
		counters += int64(min(uint64(c.Stats.Bytes), math.MaxInt64))
	}
	fmt.Fprintf(b, "limits_bytes:%d\r\nlimits_reserved:%d\r\nlimits_budget:%d\r\ncounters_bytes:%d\r\n", limits.Bytes, limits.Reserved, limits.Budget, counters)
}

func (s *Server) infoStats(b *strings.Builder) {
	t, d := s.Stats(), s.engine.Totals()
	fmt.Fprintf(b, "loading:0\r\ntotal_connections_received:%d\r\nrejected_connections:%d\r\ntotal_commands_processed:%d\r\n"+
		"decisions_allowed:%d\r\ndecisions_refused:%d\r\ndecisions_banned:%d\r\ndecisions_unmatched:%d\r\nerrors:%d\r\nrequests_unauthorized:%d\r\nclients_cut:%d\r\npanics:%d\r\n",
		t.Accepted, t.Refused, t.Requests, d.Allowed, d.Refused, d.Banned, d.Unmatched, d.Errors, t.Unauthorized, t.Cut, t.Panics)
}

func (s *Server) infoRules(b *strings.Builder) {
	status := s.engine.Status()
	state := "ok"
	if status.RulesError != nil {
		state = "the last reload failed"
	}
	fmt.Fprintf(b, "rules:%d\r\nrules_reloads:%d\r\nrules_state:%s\r\n", len(s.engine.RuleInfos()), status.Reloads, state)
}
