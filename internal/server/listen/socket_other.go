//go:build !darwin && !dragonfly && !freebsd && !illumos && !linux && !netbsd && !openbsd

package listen

func makePrivate(uintptr) {}

func lockDir(string) (unlock func()) { return func() {} }
