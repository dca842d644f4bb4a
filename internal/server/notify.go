package server

import (
	"net"
	"os"
	"strings"
)

// notify sends the state of the server to the service manager by systemd's sd_notify(3). It
// does nothing if there is none, and ignores errors.
func notify(lines ...string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if path[0] == '@' { // in the abstract namespace
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	conn.Write([]byte(strings.Join(lines, "\n")))
}
