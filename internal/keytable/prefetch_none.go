//go:build !amd64 && !arm64

package keytable

import "unsafe"

// prefetch does nothing where there is no instruction for it here.
func prefetch(unsafe.Pointer) {}
