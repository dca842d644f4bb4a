//go:build !unix

package fileperm

const nonblock = 0
