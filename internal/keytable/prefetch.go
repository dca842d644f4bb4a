//go:build amd64 || arm64

package keytable

import "unsafe"

// prefetch begins to fetch the cache line at p, to be written, and does not wait
// for it. There is no way to say this in Go.
//
//go:noescape
func prefetch(p unsafe.Pointer)
