// Package deptest has no code, only tests of the repository itself: which package
// may import which (the table is in rules_test.go), that a program that uses the
// library downloads one module, that every package has a package comment, that
// no source file contains a path of one machine, that prose is plain English, that packages which are not tested
// with the race detector are sequential, that each fuzz target has committed inputs,
// that the programs and links of the documentation work, and that git has nothing that
// a compiler has written.
package deptest
