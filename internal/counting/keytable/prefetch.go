//go:build amd64 || arm64

package keytable

// prefetch begins to fetch the cache line at p, to be written, and does not wait
// for it. There may be nothing at p, and there is no way to say this in Go.
func prefetch(p uintptr)
