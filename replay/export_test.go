package replay

import "github.com/lately-go/lately/accesslog"

// InPieces makes c read blocks that are little longer than the longest line, and judge
// chunks of about so many events, so that a small log has many of both.
func (c *Config) InPieces(events int) { c.blockSize, c.chunkEvents = accesslog.MaxLine+100, events }
