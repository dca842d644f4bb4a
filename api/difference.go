package api

import "time"

// A Difference has the changes when new rules replace old ones, for the events that both
// judged.
type Difference struct {
	Field string   `json:"field" doc:"the field by which events are listed"`
	Old   DiffSide `json:"old"`
	New   DiffSide `json:"new"`

	// Old.Refused + NewlyRefused - NewlyAllowed is New.Refused.
	NewlyRefused int64 `json:"newly_refused" doc:"events that only the new rules refuse"`
	NewlyAllowed int64 `json:"newly_allowed" doc:"events that only the old rules refuse"`

	Keys        []KeyDifference `json:"keys" doc:"the keys with such events, those with the most newly refused events first"`
	KeysLeftOut int64           `json:"keys_left_out,omitempty"`
	Bans        []BanDifference `json:"bans" doc:"the keys whose total time of bans changes, those with the largest increase first"`
	BansLeftOut int64           `json:"bans_left_out,omitempty"`

	Hurt     []KeyDifference `json:"protected_keys_hurt,omitempty" doc:"protected keys that have newly refused events"`
	HurtBans []BanDifference `json:"protected_bans_hurt,omitempty" doc:"new or longer bans of protected keys"`
}

// Empty reports whether both rules decide all events alike, and ban the same keys for
// the same time.
func (d *Difference) Empty() bool {
	return d.NewlyRefused == 0 && d.NewlyAllowed == 0 && len(d.Bans) == 0
}

// A DiffSide has the results of one of the two rules files.
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

// A BanDifference has the total time of a key's bans.
type BanDifference struct {
	Fields []string `json:"fields"`
	Key
	OldSeconds float64 `json:"old_seconds"`
	NewSeconds float64 `json:"new_seconds"`
}

// A TrialRequest is the body of POST /v1/rules/try.
type TrialRequest struct {
	Rules   string `json:"rules" doc:"the draft: the text of a rules file"`
	Field   string `json:"field,omitempty" doc:"the field by which events are listed; client by default"`
	Top     int    `json:"top,omitempty" doc:"largest number of keys and of bans to list, 1 to 1000; 20 by default"`
	Protect string `json:"protect,omitempty" doc:"keys that the draft must not refuse or ban more, one per line; clients may be networks, such as 192.0.2.0/24"`
}

// A Trial is the answer of POST /v1/rules/try: what a draft of the rules would have changed
// for the events that the server keeps.
type Trial struct {
	Errors   []Mistake   `json:"errors,omitempty" doc:"mistakes of the draft; then nothing was tried"`
	Warnings []Mistake   `json:"warnings,omitempty"`
	Events   int64       `json:"events" doc:"number of events that were judged under the rules in force and under the draft"`
	Since    time.Time   `json:"since" doc:"time from which all events are kept, except those listed in unknown"`
	First    time.Time   `json:"first,omitzero" doc:"of the events"`
	Last     time.Time   `json:"last,omitzero" doc:"of the events"`
	Unknown  []string    `json:"unknown" doc:"sentences about effects that the result does not include"`
	Changes  *Difference `json:"changes,omitempty" doc:"absent if the draft has mistakes"`
}
