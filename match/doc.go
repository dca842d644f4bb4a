// Package match says what every rule matches on: the [Event], the [Condition]
// that selects events, and the [Key] that an event is counted by.
//
// An event is one thing that happened: a time and some fields (client, path,
// status, ...). A rule picks the events it is about with a Condition and takes
// its key from them with a Key. Both are compiled once and are then used
// without allocation, from a log line and from a live request alike.
//
// Field values are bytes, not text: nothing here assumes UTF-8.
package match
