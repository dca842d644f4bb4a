package api

import (
	"net/netip"
	"time"
)

// A RuleSet is the rules in force: the answer of GET /v1/rules.
type RuleSet struct {
	File     string    `json:"file"`
	Text     string    `json:"text"`
	Since    time.Time `json:"since"`
	Error    string    `json:"error,omitempty" doc:"reason why the last reload failed; the rules in force were kept"`
	Rules    []Rule    `json:"rules"`
	Counters []Counter `json:"counters"`
	Allow    Allow     `json:"allow"`
}

// An Allow has the clients that are never limited and never banned.
type Allow struct {
	Clients []netip.Prefix `json:"clients" doc:"in the rules file itself"`
	Files   []AllowFile    `json:"files"`
}

// An AllowFile is a file of addresses and prefixes on the allow list.
type AllowFile struct {
	Name     string `json:"name" doc:"as in the rules file"`
	Prefixes int    `json:"prefixes"`
}

// A Rule is one rule in force.
type Rule struct {
	Name     string     `json:"name"`
	Kind     string     `json:"kind" doc:"limit, ban or hot"`
	Fields   []string   `json:"fields" doc:"of the key"`
	Sentence string     `json:"sentence"`
	Shadow   bool       `json:"shadow" doc:"it refuses nothing"`
	Stats    *RuleStats `json:"stats,omitempty" doc:"absent for a hot rule"`
}

// RuleStats counts the decisions of one rule by outcome since the server started, and
// its keys and bans. Each event that matched the rule has one of the first five
// outcomes or is counted in Lacking.
type RuleStats struct {
	Allowed     uint64 `json:"allowed"`
	Refused     uint64 `json:"refused" doc:"by a limit of the rule"`
	Banned      uint64 `json:"banned" doc:"refused by a ban of the rule"`
	Shadow      uint64 `json:"shadow" doc:"events that the rule would have refused without shadow mode"`
	Skipped     uint64 `json:"skipped" doc:"not judged, because a ban of another rule held"`
	BansStarted uint64 `json:"bans_started"`
	Keys        int    `json:"keys"`
	Bans        int    `json:"bans"`

	Lacking         uint64 `json:"lacking,omitempty" doc:"events that match the rule and lack a field of its key: not judged, or refused"`
	LackingRefused  uint64 `json:"lacking_refused,omitempty" doc:"the part of lacking that the rule refused, or would have refused in shadow mode; included in refused or shadow"`
	LackingSentence string `json:"lacking_sentence,omitempty" doc:"a sentence about the events that lack a field"`
}

// Events returns the number of events that matched the rule.
func (s *RuleStats) Events() uint64 {
	return s.Allowed + s.Refused + s.Banned + s.Shadow + s.Skipped + s.Lacking - s.LackingRefused
}

// RulesValidation is the answer of POST /v1/rules/check: the meaning of a rules
// file, or its mistakes.
type RulesValidation struct {
	OK        bool      `json:"ok"`
	Sentences []string  `json:"sentences,omitempty"`
	Warnings  []Mistake `json:"warnings,omitempty"`
	Errors    []Mistake `json:"errors,omitempty"`
}

// A Mistake is one mistake in a rules file.
type Mistake struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// A ReloadRequest is the body of POST /v1/rules/reload.
type ReloadRequest struct {
	DropBans bool `json:"drop_bans,omitempty" doc:"drop the bans under rules that are removed or get another key; without it such rules are rejected"`
}

// RuleChanges is the answer of POST /v1/rules/reload: the sorted names of changed rules,
// and of changed counters with "counter " before the name.
type RuleChanges struct {
	Added       []string `json:"added"`
	Removed     []string `json:"removed"`
	Changed     []string `json:"changed" doc:"the allow list is called \"allow list\""`
	BansDropped int      `json:"bans_dropped" doc:"bans under rules that were removed or got another key"`
}
