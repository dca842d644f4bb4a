// Package match provides events, conditions and keys for rules: a [Condition] selects an
// [Event], and a [Key] extracts the bytes that the event is counted by.
//
// An event is one thing that happened: a time and some fields (client, path,
// status, ...). Conditions and keys are compiled once and then used without
// allocation, for log lines and for live requests.
//
// Field values are bytes, not text: nothing here assumes UTF-8.
package match
