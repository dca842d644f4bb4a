// Package match has what all rules work on: the [Event], the [Condition] that selects
// events, and the [Key] that an event is counted by.
//
// An event is one thing that happened: a time and some fields (client, path,
// status, ...). Conditions and keys are compiled once and then used without
// allocation, for log lines and for live requests.
//
// Field values are bytes, not text: nothing here assumes UTF-8.
package match
