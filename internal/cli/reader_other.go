//go:build !unix

package cli

import (
	"context"
	"io"
)

// readerGone does nothing: writing the next line fails.
func readerGone(context.Context, io.Writer, func(error)) {}
