package latelyredis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
)

// Dial connects as rueidis does by default, and checks what the server sends as [CheckedConn] does:
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{
//		InitAddress: []string{"127.0.0.1:6379"},
//		DialCtxFn:   latelyredis.Dial,
//	})
func Dial(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	var conn net.Conn
	var err error
	if config != nil {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	return CheckedConn(conn, nil), nil
}

// CheckedConn returns a net.Conn over conn that checks replies before a client library reads them. Use it in the dialer of
// the library. Libraries trust replies: one damaged length makes rueidis and go-redis panic in a goroutine of their own,
// which ends the program, or allocate gigabytes.
//
// A reply must be well-formed, in version 2 or 3 of the protocol, with at most 32 MiB, 262,144
// values and 32 levels, which is more than a [Store] or [Counters] need. There must be as many
// replies as commands: after 250 ms on a connection that always expects more, writes wait until
// another goroutine has read all, for a second at most. Addresses that rueidis reads without
// a check must be present: in replies about a primary, in MOVED, and in messages of Sentinel. After
// any other reply the connection is closed, reads return the reason, and damaged, unless it is nil,
// is called with it once.
//
// Changed bytes within a string or a number are not detected. Do not use commands that do not have
// exactly one reply (MONITOR, CLIENT REPLY, SUBSCRIBE in a transaction), attributes, or the key
// tracking of Redis 6, whose messages interrupt replies.
//
// It costs about half a microsecond and no allocation for a command of a store and its reply.
func CheckedConn(conn net.Conn, damaged func(error)) net.Conn {
	return &checkedConn{Conn: conn, pairing: newPairing(), damaged: damaged}
}

type checkedConn struct {
	net.Conn
	pairing *pairing
	damaged func(error)
	once    sync.Once // for damaged
	err     error     // of reads, for good
}

// Write counts the commands in b before they are sent, since the reply may be there before Write returns.
func (c *checkedConn) Write(b []byte) (int, error) {
	if err := c.pairing.sent(b); err == errMissing {
		return 0, c.fail(err)
	} else if err != nil {
		return 0, fmt.Errorf("latelyredis: a command to %s cannot be counted: %w", c.RemoteAddr(), err)
	}
	return c.Conn.Write(b)
}

// Read returns nothing of a damaged reply but what had come before it was found damaged.
func (c *checkedConn) Read(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(b)
	good, fault := c.pairing.received(b[:n])
	if fault == nil {
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			c.pairing.end()
		}
		return n, err
	}
	c.err = c.fail(fault)
	return good, c.err
}

// Close ends the wait of a command, too.
func (c *checkedConn) Close() error {
	c.pairing.end()
	return c.Conn.Close()
}

// fail closes the connection, and returns why.
func (c *checkedConn) fail(fault error) error {
	err := fmt.Errorf("latelyredis: a damaged reply of %s, the connection is closed: %w", c.RemoteAddr(), fault)
	c.Conn.Close()
	c.once.Do(func() {
		if c.damaged != nil {
			c.damaged(err)
		}
	})
	return err
}
