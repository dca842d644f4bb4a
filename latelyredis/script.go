package latelyredis

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

//go:embed lua
var lua embed.FS

// A script is Lua that Redis runs, and the name by which it knows it.
type script struct {
	text, sha string
	each      bool // it decides about several subjects, see bundle.go
}

// takeNumber takes the number of a numberedConn from behind the arguments: a script returns it before its answer.
const takeNumber = "local callNumber = table.remove(ARGV)\n"

// newScript returns a script that answers what text returns, behind the number of its call.
func newScript(text string) *script {
	return hashedScript(takeNumber + "local function answer()\n" + text + "\nend\nreturn callNumber .. answer()")
}

func hashedScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

// newEachScript returns a script that has a function decide, for each subject, and each.lua.
func newEachScript(text string) *script {
	s := hashedScript(takeNumber + text)
	s.each = true
	return s
}

// withCommon returns a script that uses common.lua. The rest is in a function: else Redis, which makes the functions of a
// script at each call, takes 3 to 6 % longer, since it searches a list of all locals for each that a function uses.
func withCommon(clock, rest string) string {
	return clock + source("common") + "return (function()\n" + rest + "end)()\n"
}

// scripts are those of a rule set.
type scripts struct {
	// decide has the windows of the set's algorithms only: Redis makes the functions of a
	// script at each call.
	decide *script
	// fast decides about one rule with one limit, by the family of its window. It has one
	// function where decide has more than thirty, and takes less than half the time.
	fast map[string]*script
	// repair decides as well, and also withdraws a charge, reads a record of other limits
	// and moves one whose clock was set back.
	repair *script
	// correct charges and gives back without a decision.
	correct *script
	// list changes the list of bans, page reads a part of it, and sync what has changed.
	list, page, sync *script
	memory           *script // asks for the state of the server's memory
}

// families are the files of the windows, in an order in which each finds what it uses.
var families = []string{"nothing", "log", "slots", "ring", "sliding", "two", "level", "variable", "period"}

// newScripts returns the scripts for a rule set, which take the time as clock does.
func newScripts(clock string, set *ratelimit.Set) scripts {
	used, bans := map[string]bool{}, ""
	for _, r := range set.Rules() {
		for _, l := range r.Limits {
			for _, f := range familiesOf(r.Algorithm, l) {
				used[f] = true
			}
		}
		if r.Ban != nil {
			bans = source("ban")
			for _, f := range familiesOf(ratelimit.Exact, ratelimit.Limit{N: r.Ban.After}) {
				used[f] = true
			}
		}
	}
	var some, all strings.Builder
	for _, f := range families {
		if used[f] {
			some.WriteString(source(f))
		}
		all.WriteString(source(f))
	}
	for _, f := range families {
		if f != "slots" { // which has nothing to correct
			all.WriteString(source(f + "_correct"))
		}
	}
	record, repair := source("record"), source("ban")+source("repair")
	fast := make(map[string]*script)
	for _, f := range fastFamilies {
		fast[f] = newEachScript(clock + source("fast") + source("fast_"+f) + source("fast_end") + source("each"))
	}
	return scripts{
		fast:    fast,
		decide:  newEachScript(withCommon(clock, some.String()+record+bans+source("decide")+source("each"))),
		repair:  newScript(withCommon(clock, all.String()+record+repair+source("decide")+source("alone"))),
		correct: newScript(withCommon(clock, all.String()+record+repair+source("correct"))),
		list:    newScript(clock + source("list")),
		page:    newScript(clock + source("page")),
		sync:    newScript(clock + source("stream") + source("sync")),
		memory:  newScript(source("memory")),
	}
}

// fastFamilies are the windows with a fast script.
var fastFamilies = []string{"level", "log", "ring", "two", "period"}

// fastFamily returns the family of the fast script that decides about a rule, or "".
func fastFamily(r *ratelimit.Rule) string {
	if len(r.Limits) != 1 || r.Ban != nil || r.Shadow || r.CountRefused || r.Algorithm == ratelimit.LeakyBucket {
		return "" // a leaky bucket has a delay
	}
	l := r.Limits[0]
	used, micros := familiesOf(r.Algorithm, l), l.Span.Microseconds()
	last := used[len(used)-1]
	switch {
	case (last == "level" || last == "two") && uint64(micros) > (1<<53-1)/max(l.N, l.Burst, l.AtMost):
		return "" // a product of the script may not be exact
	case slices.Contains(used, "ring"):
		if micros%3000 != 0 && micros%64 != 0 {
			return "" // a slot is not a whole number of microseconds
		}
		return "ring"
	case r.Algorithm != ratelimit.Calendar && slices.Contains(fastFamilies, last): // a calendar has periods
		return last
	}
	return ""
}

// familiesOf returns the files that a limit needs.
func familiesOf(a ratelimit.Algorithm, l ratelimit.Limit) []string {
	n := max(l.N, l.AtMost)
	switch {
	case isVariable(a, l):
		return []string{"variable"}
	case n == 0:
		return []string{"nothing"}
	case a == ratelimit.Sliding && n > limit.SlidingExact:
		return []string{"log", "slots", "ring", "sliding"}
	case a == ratelimit.TwoBucket:
		return []string{"slots", "two"}
	case a == ratelimit.GCRA, a == ratelimit.LeakyBucket:
		return []string{"level"}
	case a == ratelimit.Fixed, a == ratelimit.Calendar:
		return []string{"period"}
	}
	return []string{"log"}
}

// isVariable reports whether l is a bucket whose N is data.
func isVariable(a ratelimit.Algorithm, l ratelimit.Limit) bool {
	return l.AtMost > 0 && a.Bursts()
}

// source returns the file of that name.
func source(name string) string {
	text, err := lua.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}
