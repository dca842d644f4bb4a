// Package deptest has no code, only tests: of what the house promises about
// itself. Who imports whom (the table is in rules_test.go), that a program that
// uses the library downloads one module, that every package says what it is,
// and that no source file knows the machine it was written on.
package deptest
