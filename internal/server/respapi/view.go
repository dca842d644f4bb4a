package respapi

import "unsafe"

// view returns b as a string, for those who do not keep it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
