// Package replay runs rules over logs, in event time, through the very code
// that enforces them: who hammers us, what would a limit have refused, who
// would have been banned, which keys ran hot.
//
// [Run] reads files (plain, gzip, zstd, bzip2 or standard input), parses them
// on all cores, puts their events in order and judges them, either under a
// rules file or under what-ifs ("60/1m"), each as if it were alone. The result
// is a [Report], which does not depend on the number of cores. Events are judged at the
// times that the log has; if these lack fractions, a [Range] says how often each limit
// and ban refuses at least and at most, whatever they are.
//
// Events are kept as compact records: a time and a number for each field that
// matters, with each distinct value once.
package replay
