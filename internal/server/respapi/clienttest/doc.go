// Package clienttest tests the RESP listener with the clients that people use. It is
// a module of its own, so that nobody downloads them who does not test them.
package clienttest
