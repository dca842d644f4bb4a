package respapi

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
)

// wanted has for each command the role that it needs, and how it is sent. A command that is missing here fails the test: a
// new one must be added with its role.
var enumeration = map[string]struct {
	need access.Role
	line string
}{
	"check":        {access.Check, "CHECK user a"},
	"outcome":      {access.Check, "OUTCOME user a status 401"},
	"take":         {access.Check, "TAKE login a"},
	"peek":         {access.Check, "PEEK login a"},
	"refund":       {access.Check, "REFUND login a"},
	"release":      {access.Check, "RELEASE login a"},
	"cl.throttle":  {access.Check, "CL.THROTTLE a 1 1 1"},
	"reset":        {access.Admin, "RESET login a"},
	"add":          {access.Check, "ADD pages a"},
	"sum":          {access.Read, "SUM requests a"},
	"rate":         {access.Read, "RATE requests a"},
	"top":          {access.Read, "TOP requests 3"},
	"ban":          {access.Admin, "BAN login z 10m"},
	"unban":        {access.Admin, "UNBAN login z"},
	"unbanall":     {access.Admin, "UNBANALL RULE login"},
	"bans":         {access.Read, "BANS"},
	"hot.report":   {access.Check, "HOT.REPORT product /product/x 1 0"},
	"hot.changed":  {access.Check, "HOT.CHANGED product /product/x"},
	"hot.cache":    {access.Check, "HOT.CACHE product 1 1 1 1"},
	"hot.stats":    {access.Read, "HOT.STATS"},
	"hot.watch":    {access.Read, "HOT.WATCH"},
	"hot.list":     {access.Read, "HOT.LIST product"},
	"rules":        {access.Read, "RULES"},
	"subscribe":    {access.Read, "SUBSCRIBE bans"},
	"psubscribe":   {access.Read, "PSUBSCRIBE *"},
	"unsubscribe":  {access.Read, "UNSUBSCRIBE bans"},
	"punsubscribe": {access.Read, "PUNSUBSCRIBE *"},
	"hello":        {access.Read, "HELLO 2"}, // and for all with AUTH
	"auth":         {access.None, "AUTH " + readToken},
	"ping":         {access.None, "PING"},
	"quit":         {access.None, "QUIT"},
	"del":          {access.Check, "DEL a"},
	"charge":       {access.Check, "CHARGE login ada"},
	"reserve":      {access.Check, "RESERVE login ada"},
	"settle":       {access.Check, "SETTLE id COST 1"},
	"multi":        {access.Read, "MULTI"},
	"exec":         {access.Read, "EXEC"},
	"discard":      {access.Read, "DISCARD"},
	"echo":         {access.Read, "ECHO a"},
	"select":       {access.Read, "SELECT 0"},
	"client":       {access.Read, "CLIENT ID"},
	"command":      {access.Read, "COMMAND COUNT"},
	"info":         {access.Read, "INFO"},
	"config":       {access.Read, "CONFIG GET x"},
}

// more is lines that need more than their command.
var more = []struct {
	need access.Role
	line string
}{
	{access.None, "RESET"},
	{access.None, "HELLO 3 AUTH default " + readToken},
}

func TestEveryCommandAndRole(t *testing.T) {
	tokens := testTokens(t, "")
	s := start(t, Config{Tokens: func() *access.Tokens { return tokens }}, false)
	try := func(need access.Role, line string) {
		for role, token := range map[access.Role]string{access.None: "", access.Read: readToken, access.Check: checkToken, access.Admin: adminToken} {
			c := s.dial()
			if token != "" {
				c.want("AUTH "+token, "+OK")
			}
			got := c.do(line)
			if refused := strings.HasPrefix(got, "-NOPERM ") || strings.HasPrefix(got, "-NOAUTH "); refused == role.May(need) {
				t.Errorf("%s as %v answers %s; it needs %v", line, role, got, need)
			}
			c.conn.Close()
		}
	}
	for _, cmd := range s.commands.all {
		e, ok := enumeration[cmd.name]
		if !ok {
			t.Errorf("command %s has no entry in this test", cmd.name)
			continue
		}
		try(e.need, e.line)
	}
	for _, m := range more {
		try(m.need, m.line)
	}
	if len(enumeration) != len(s.commands.all) {
		t.Errorf("%d commands have entries; there are %d", len(enumeration), len(s.commands.all))
	}
	if s.Unauthorized.Load() == 0 {
		t.Error("nothing was counted as unauthorized")
	}
}

// Every command can be found, executed and looked up in the help.
func TestTable(t *testing.T) {
	table := newCommandTable(commands)
	for _, c := range table.all {
		if c.name != strings.ToLower(c.name) || len(c.name) > maxName || c.summary == "" || c.group == "" || c.least < 1 || c.handle == nil {
			t.Errorf("command %+v is not complete", c)
		}
	}
	if len(table.byName) != len(table.all) {
		t.Errorf("%d commands have %d names", len(table.all), len(table.byName))
	}
}

func TestAuthentication(t *testing.T) {
	tokens := testTokens(t, "")
	s := start(t, Config{Tokens: func() *access.Tokens { return tokens }}, false)
	c := s.dial()
	c.want("TAKE login a", "-NOAUTH authentication required: AUTH token")
	c.want("HELLO 3", "-NOAUTH authentication required: HELLO 3 AUTH default token")
	c.want("HELLO 3 AUTH default wrong", "-WRONGPASS the token is unknown")
	c.want("HELLO 3 AUTH default "+adminToken, `%["server" "lately"…`)
	c.want("CLIENT ID", "1")
	c.want("TAKE login a", "[1 3 …")
	c.want("RESET", "+RESET")
	c.want("TAKE login a", "-NOAUTH …")
	c.want("AUTH wrong", "-WRONGPASS the token is unknown")
	c.want("AUTH any "+checkToken, "+OK")
	c.want("BAN login a 10m", "-NOPERM ban needs the role admin")
	c.want("AUTH wrong", "-WRONGPASS the token is unknown")
	c.wantEnd() // the third

	c = s.dial()
	for range 20 { // from the same address
		c.want("AUTH wrong", "-WRONGPASS the token is unknown")
		c.want("AUTH "+adminToken, "+OK")
		c = s.dial()
	}
}

// TestStrangersSendLittle has a client without a role send more than a login takes.
func TestStrangersSendLittle(t *testing.T) {
	tokens := testTokens(t, "")
	s := start(t, Config{Tokens: func() *access.Tokens { return tokens }}, false)
	c := s.dial()
	c.want("ECHO "+strings.Repeat("x", 2000), "-ERR Protocol error: invalid bulk length")
	c.wantEnd()
	c = s.dial()
	c.want("AUTH "+readToken, "+OK")
	c.want("ECHO "+strings.Repeat("x", 60_000), `"xxx…`)
}

// TestTokensChange closes the connections with tokens that were removed, and no others.
func TestTokensChange(t *testing.T) {
	var tokens atomic.Pointer[access.Tokens]
	tokens.Store(testTokens(t, ""))
	s := start(t, Config{Tokens: tokens.Load}, false)
	c := s.dial()
	c.want("AUTH "+adminToken, "+OK")
	tokens.Store(testTokens(t, "")) // the same, read again
	c.want("TAKE login a", "[1 3 2 …")
	tokens.Store(testTokens(t, fmt.Sprintf("read %032d\n", 7)))
	c.send("TAKE login a")
	c.wantEnd()
	c = s.dial()
	c.want("AUTH "+adminToken, "+OK")
	c.want("PEEK login a", "[1 3 1 …")
	tokens.Store(nil)
	c.send("PING")
	c.wantEnd()
	c = s.dial()
	c.want("PEEK login a", "[1 3 1 …")
	tokens.Store(testTokens(t, "")) // no more for everyone
	c.send("PEEK login a")
	c.wantEnd()
}

// TestSubscribersEndWithTheirTokens has subscribers that send no further command.
func TestSubscribersEndWithTheirTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tokens atomic.Pointer[access.Tokens]
		tokens.Store(testTokens(t, ""))
		s := start(t, Config{Tokens: tokens.Load}, true)
		listen := func(token string) *caller {
			c := s.dial()
			if token != "" {
				c.want("AUTH "+token, "+OK")
			}
			c.want("SUBSCRIBE bans", `["subscribe" "bans" 1]`)
			return c
		}
		a, b := listen(readToken), listen(adminToken)
		tokens.Store(testTokens(t, "")) // the same, read again
		time.Sleep(time.Hour)
		must.Get(s.Engine.Bans().Ban("login", []string{"a"}, time.Minute, "", "me"))(t)
		for _, c := range []*caller{a, b} {
			if got := c.next(); !strings.HasPrefix(got, `["message" "bans"`) {
				t.Errorf("after the same tokens were read again: %s", got)
			}
		}
		ends := func(c *caller) time.Duration {
			c.conn.SetReadDeadline(time.Now().Add(time.Minute)) // as good as never
			return c.ends()
		}
		tokens.Store(testTokens(t, fmt.Sprintf("read %032d\n", 7)))
		within(t, "other tokens", ends(a), 0, time.Second)
		within(t, "other tokens", ends(b), 0, time.Second)
		tokens.Store(nil)
		c := listen("")
		time.Sleep(time.Hour)
		tokens.Store(testTokens(t, "")) // no more for everyone
		within(t, "tokens where there were none", ends(c), 0, time.Second)
		synctest.Wait()
		if s.Cut.Load() != 0 || s.Subscribers.Load() != 0 {
			t.Errorf("%d were cut, and %d subscribe; nobody was slow, and nobody is left", s.Cut.Load(), s.Subscribers.Load())
		}
	})
}
