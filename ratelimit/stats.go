package ratelimit

// Stats is what a [Limiter] has decided so far, and what its memory holds. Its
// size depends on the number of rules, never on the number of keys.
type Stats struct {
	Rules []RuleStats

	// Budget is the bound of the memory store in bytes, or NoBudget. Bytes is what
	// limits and bans use of it, and Reserved what is kept free in it for bans by
	// hand, and for the sketches of keys that do not fit, until they are needed.
	// Bytes + Reserved is at most Budget. All are 0 for another store.
	Budget, Bytes, Reserved int64

	// Bans is how many keys are banned, as of the newest time at which a key was
	// added, and Remembered how many keys are banned or were. BansRefused is how
	// many bans could not begin for want of room, and BansDropped how many that
	// were over were forgotten early to make some.
	Bans, Remembered, BansRefused, BansDropped uint64

	// Fallbacks is how many decisions were made by fail policies, because the
	// store could not decide.
	Fallbacks uint64
}

// RuleStats is what one rule has decided: each event that it was asked about is
// one of Allowed, Refused, Banned, Shadow and Skipped.
type RuleStats struct {
	Rule string

	Allowed uint64 // by this rule; another may have refused
	Refused uint64 // by this rule's limits
	Banned  uint64 // refused by this rule's bans
	Shadow  uint64 // that a shadow rule would have refused, by a limit or a ban
	Skipped uint64 // not judged, because a ban of another rule held

	BansStarted uint64

	Keys      int    // that it holds
	Bans      int    // that hold
	Limit     uint64 // N of the first limit as it is now, which an Adapt moves
	Expired   uint64 // keys forgotten with nothing left in their windows
	Forgotten uint64 // keys forgotten for want of room, unprotected all
	Sketched  uint64 // decisions about keys that the sketch counts
	Full      uint64 // decisions that refused for want of any room
}
