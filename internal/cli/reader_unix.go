//go:build unix

package cli

import (
	"context"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readerGone calls stop when who reads out, a pipe, has ended: head -n 2 ends while nothing is written that would tell.
func readerGone(ctx context.Context, out io.Writer, stop func(error)) {
	f, ok := out.(*os.File)
	if !ok {
		return
	}
	if i, err := f.Stat(); err != nil || i.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	for ctx.Err() == nil {
		fds := []unix.PollFd{{Fd: int32(f.Fd())}} // what is waited for is an error, which poll always reports
		if n, _ := unix.Poll(fds, 500); n > 0 && fds[0].Revents&unix.POLLERR != 0 {
			stop(syscall.EPIPE)
			return
		}
	}
}
