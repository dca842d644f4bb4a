// Package clientaddr finds out who a client is: from the peer of a connection and,
// where that is a trusted proxy, from the header in which proxies name the clients
// they speak for. latelyhttp and latelygrpc share it, so that one client has one name
// whichever way it comes in.
//
// Addresses are parsed, never compared as text, and a header is read from the right,
// and only the part that trusted proxies wrote.
package clientaddr
