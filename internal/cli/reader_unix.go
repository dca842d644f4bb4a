//go:build unix

package cli

import (
	"context"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readerGone calls stop when the reader of out, a pipe, has ended. Writing would fail then, but after head -n 2 there may be
// nothing to write for hours.
func readerGone(ctx context.Context, out io.Writer, stop func(error)) {
	f, ok := out.(*os.File)
	if !ok {
		return
	}
	if i, err := f.Stat(); err != nil || i.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	for ctx.Err() == nil {
		fds := []unix.PollFd{{Fd: int32(f.Fd())}} // no events: poll always reports errors
		if n, _ := unix.Poll(fds, 500); n > 0 && fds[0].Revents&unix.POLLERR != 0 {
			stop(syscall.EPIPE)
			return
		}
	}
}
