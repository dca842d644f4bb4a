// Package limits measures decisions: may this event of this key pass, under a
// limit? The rows are floors, the limiters that can be had as modules, and each
// algorithm of ours, for one key and for up to a million.
//
// All rows have the same limit where the name does not say another: a thousand
// events a key in the time that a row takes. The rows of ours have it as a
// thousand a minute, those of the peers as a thousand a day, so that no window of
// theirs ends while they are measured. Keys come Zipf distributed, so the hottest
// few dozen reach the limit and are refused from then on; all other events are
// allowed. Each row says how much it refused (refused-%). Rows with 60 a minute
// refuse the hottest few hundred keys. Every sample has the same number of
// events, so that a fast row does not refuse more than a slow one.
//
// Not here: mennanov/limiters, webriots/rate and clipperhouse/rate, which the
// public module proxy did not serve when this was written.
package limits
