// Package clientaddr finds the address of a client: that of the connection's peer or, if
// the peer is a trusted proxy, the one in the header in which proxies name their
// clients. latelyhttp and latelygrpc share it, so that a client has the same key over
// HTTP and gRPC.
//
// Addresses are parsed, never compared as text. A header is read from the right, and
// only the part that trusted proxies wrote.
package clientaddr
