package main

import (
	"io"
	"net"
	"time"
)

// relay listens on an address, until the process ends, and passes on to a server what it
// gets, and back, so that each round trip takes longer by delay.
func relay(server string, delay time.Duration) (address string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			go pass(upstream, client, delay/2)
			go pass(client, upstream, delay/2)
		}
	}()
	return listener.Addr().String(), nil
}

// A piece is what was read at a time.
type piece struct {
	bytes []byte
	due   time.Time
}

// pass writes to one what the other sends, each piece so much later.
func pass(to io.WriteCloser, from io.Reader, delay time.Duration) {
	pieces := make(chan piece, 1024)
	go func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				return
			}
		}
	}()
	defer close(pieces)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		pieces <- piece{append([]byte(nil), buffer[:n]...), time.Now().Add(delay)}
	}
}
