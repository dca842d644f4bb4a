// Package resp is the wire protocol of Redis, versions 2 and 3. Servers have a [Reader] of
// commands and a [Writer] of replies; clients write commands with [AppendCommand] and read
// replies with a [ReplyReader]. It is independent of the commands.
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
// So a pipeline of commands that arrived in one read is answered in one write.
//
// # Cost
//
// Commands and replies do not allocate once the buffers have grown. Arguments are views of
// the read buffer, valid until the next command is read. Buffers begin small, double with
// the bytes received (never with an announced length), and shrink again.
//
// # Differences from Redis
//
// The grammar is as in the Redis protocol specification and in redis-server 7, except that
// these are errors: an argument that is not followed by CR LF, a bare CR in a length line, a
// multi-bulk count below -1, a NUL byte in an inline command, a length line longer than any
// number. A command is refused at its first wrong byte, however the stream is split into
// packets. As in Redis, an inline command that begins with "POST" or "Host:" ends the
// connection: it is from a browser that was made to call a loopback port.
//
// # Concurrency
//
// A Reader and a Writer are each for one goroutine at a time, which may be different ones.
package resp
