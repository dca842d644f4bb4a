//go:build amd64 || arm64

package baseline

import "unsafe"

// prefetch begins to fetch the cache line at p for writing, and does not wait.
//
//go:noescape
func prefetch(p unsafe.Pointer)
