//go:build !amd64 && !arm64

package baseline

import "unsafe"

func prefetch(unsafe.Pointer) {}
