// Package clienttest tests the RESP listener with the clients that people use. It is
// a module of its own, so that only its tests download these clients.
package clienttest
