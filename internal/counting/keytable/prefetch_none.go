//go:build !amd64 && !arm64

package keytable

// prefetch does nothing where there is no instruction for it here.
func prefetch(uintptr) {}
