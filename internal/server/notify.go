package server

import (
	"net"
	"os"
	"strings"
)

// notify tells the service manager what state the server is in, by the protocol of
// systemd's sd_notify(3): a datagram to the socket that it named. Without one it
// does nothing, and a manager that does not listen is no error.
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
