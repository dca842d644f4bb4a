package api

import "time"

// A Difference is what changes when new rules replace old ones, for the events on which both
// were judged.
type Difference struct {
	Field string   `json:"field" doc:"by which events are listed"`
	Old   DiffSide `json:"old"`
	New   DiffSide `json:"new"`

	// Old.Refused + NewlyRefused - NewlyAllowed is New.Refused.
	NewlyRefused int64 `json:"newly_refused" doc:"events that only the new rules refuse"`
	NewlyAllowed int64 `json:"newly_allowed" doc:"events that only the old rules refuse"`

	Keys        []KeyDifference `json:"keys" doc:"the keys with such events, first those with the most newly refused events"`
	KeysLeftOut int64           `json:"keys_left_out,omitempty"`
	Bans        []BanDifference `json:"bans" doc:"the keys of rules that are banned for another time in all, first those that are banned for longer than before"`
	BansLeftOut int64           `json:"bans_left_out,omitempty"`

	Hurt     []KeyDifference `json:"protected_keys_hurt,omitempty" doc:"protected keys that have newly refused events"`
	HurtBans []BanDifference `json:"protected_bans_hurt,omitempty" doc:"bans of protected keys that are new or longer"`
}

// Empty reports whether the rules decide all events alike, and ban the same keys for the
// same time.
func (d *Difference) Empty() bool {
	return d.NewlyRefused == 0 && d.NewlyAllowed == 0 && len(d.Bans) == 0
}

// A DiffSide is what one of the rules files does.
type DiffSide struct {
	Rules         string  `json:"rules" doc:"name of the file"`
	Allowed       int64   `json:"allowed"`
	Refused       int64   `json:"refused"`
	Bans          int64   `json:"bans" doc:"that began"`
	BannedSeconds float64 `json:"banned_seconds" doc:"of all keys of rules"`
}

// A KeyDifference is a key whose events are decided differently.
type KeyDifference struct {
	Key
	Events       int64 `json:"events"`
	OldRefused   int64 `json:"old_refused"`
	NewRefused   int64 `json:"new_refused"`
	NewlyRefused int64 `json:"newly_refused"`
	NewlyAllowed int64 `json:"newly_allowed"`
}

// A BanDifference is for how long a key of some rules is banned, in all.
type BanDifference struct {
	Fields []string `json:"fields"`
	Key
	OldSeconds float64 `json:"old_seconds"`
	NewSeconds float64 `json:"new_seconds"`
}

// A TrialRequest is the body of POST /v1/rules/try.
type TrialRequest struct {
	Rules   string `json:"rules" doc:"the draft: the text of a rules file"`
	Field   string `json:"field,omitempty" doc:"by which events are listed; client by default"`
	Top     int    `json:"top,omitempty" doc:"how many keys and how many bans are listed, 1 to 1000; 20 by default"`
	Protect string `json:"protect,omitempty" doc:"keys that the draft must not hurt, one in a line; clients may be networks, such as 192.0.2.0/24"`
}

// A Trial is the answer of POST /v1/rules/try: what a draft of the rules would have changed
// for the events that the server keeps.
type Trial struct {
	Errors   []Mistake   `json:"errors,omitempty" doc:"mistakes of the draft; then nothing was tried"`
	Warnings []Mistake   `json:"warnings,omitempty"`
	Events   int64       `json:"events" doc:"that were judged under the rules in force and under the draft"`
	Since    time.Time   `json:"since" doc:"from when on the events are whole, except those that unknown names"`
	First    time.Time   `json:"first,omitzero" doc:"of the events"`
	Last     time.Time   `json:"last,omitzero" doc:"of the events"`
	Unknown  []string    `json:"unknown" doc:"what the answer does not take into account, as sentences"`
	Changes  *Difference `json:"changes,omitempty" doc:"left out if the draft has mistakes"`
}
