package server

import "fmt"

// Descriptors that connections leave to files: of the server, and of each log that is followed,
// with the files that it was rotated to.
const (
	otherDescriptors = 128
	logDescriptors   = 32
)

// limitConnections lowers the connections of each listener to what a limit of open files allows, so that
// neither the journal nor a snapshot is ever without a descriptor. A limit of 0 is unknown.
func (c *Config) limitConnections(limit uint64) error {
	listeners := 0
	for _, addr := range []string{c.RESP, c.HTTP} {
		if addr != Off {
			listeners++
		}
	}
	if limit == 0 || listeners == 0 {
		return nil
	}
	other := otherDescriptors + logDescriptors*len(c.Follow)
	most := (int(min(limit, 1<<30)) - other) / listeners
	switch {
	case most < 1:
		return fmt.Errorf("open files: a limit of %d: must be more than %d (ulimit -n, or LimitNOFILE of systemd)", limit, other+listeners)
	case most >= c.MaxConnections:
		return nil
	}
	c.MaxConnections, c.PeerConnections = most, min(c.PeerConnections, most)
	return nil
}
