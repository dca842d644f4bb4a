// Package resp is a server's side of the wire protocol of Redis, versions 2 and 3:
// a [Reader] of commands and a [Writer] of replies. It knows no command: names, arity
// and roles are the server's. Clients in tests and benchmarks write commands with
// [AppendCommand].
//
// # The loop of a server
//
//	for {
//		args, err := r.Next() // reads only when no whole command is buffered
//		if err != nil {
//			// On a ProtocolError: w.Error("ERR", err.Error()), flush, close.
//			break
//		}
//		answer(w, args)
//		if !r.Ready() || w.Full() {
//			err = w.Flush()
//		}
//	}
//
// A pipeline of commands that came in one read is so answered in one write.
//
// # What it costs
//
// Neither a command nor a reply allocates once the buffers have their size.
// Arguments are views of the read buffer, valid until the next command is asked for.
// Buffers begin small, grow by doubling with what has come in (never with what a
// peer says will come), and shrink again.
//
// # Where it is stricter than Redis
//
// The grammar is that of the Redis protocol specification and of redis-server
// 7. These are refused although redis-server lets them pass: an argument that
// is not followed by CR LF, a bare CR in a length line, a multi-bulk count
// below -1, a NUL byte in an inline command, a length line longer than any
// number. A command is refused at its first wrong byte, whatever follows. The
// outcome never depends on how the network cut the stream. As in Redis, an
// inline command that begins with "POST" or "Host:" ends the connection: it is
// a browser that somebody sends to a loopback port.
//
// # Concurrency
//
// A Reader and a Writer each belong to one goroutine at a time.
// Reading and writing on one connection may be in two.
package resp
