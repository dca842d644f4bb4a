package api

// Enforcement is the state of what has others refuse what the server has banned.
type Enforcement struct {
	Networks int                 `json:"networks" doc:"addresses and networks that are to be refused"`
	Skipped  map[string]int      `json:"skipped" doc:"bans that are not enforced, by reason; those that ended in the last minute may be among them"`
	Targets  []EnforcementTarget `json:"targets"`
}

// An EnforcementTarget is the state of one target of enforcement.
type EnforcementTarget struct {
	Name     string `json:"name"`
	Lag      Millis `json:"lag_ms" doc:"for how long the target has lacked a change; 0 if it has all"`
	Error    string `json:"error,omitempty" doc:"of the last attempt; left out if that succeeded"`
	Failures uint64 `json:"failures" doc:"attempts that failed"`
	Batches  uint64 `json:"batches" doc:"that were applied"`
	Repairs  uint64 `json:"repairs" doc:"times that somebody else had changed the target"`
	Dropped  uint64 `json:"dropped" doc:"ends of bans that the target was not told of within an hour"`
}
