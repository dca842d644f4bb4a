package latelygrpc

import (
	"google.golang.org/grpc"
)

// A stream judges each message that its client sends. Like the ServerStream it
// wraps, it is read by one goroutine at a time.
type stream struct {
	grpc.ServerStream
	interceptor *Interceptor
	call        *Call
	refused     error
}

// RecvMsg receives a message and judges it. A refused message has been read, but
// is not for the handler: gRPC has no way to leave it unread.
func (s *stream) RecvMsg(m any) error {
	if s.refused != nil {
		return s.refused
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	s.refused = s.interceptor.judgeMessage(s.call, m)
	return s.refused
}
