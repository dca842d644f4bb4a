// Package replay tests rules on logs: it judges the events of a log, at the times of the
// log, with the code that enforces the rules live. The report lists the busiest keys, what
// each limit would have refused, the clients that would have been banned, and the hot
// keys.
//
// [Run] reads files (plain, gzip, zstd, bzip2 or standard input), parses them on all
// cores, sorts the events by time and judges them: under the rules of a file together, or
// under each [WhatIf] ("60/1m") alone. The [Report] does not depend on the number of
// cores.
//
// The other functions use the same judge: [Suggest] finds limits that fit a log, [Diff]
// compares two rules files on it, [Explain] returns why a key was refused, and [Test]
// runs the tests of a rules file.
//
// Memory holds all events, each as a time and a number for each field that a rule uses;
// each distinct value is stored once. With [Config.Lateness] it holds only events that
// an earlier one may still follow. Judging costs what live decisions cost.
package replay
