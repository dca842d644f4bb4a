// Package ratelimitheader writes the limits of a rule set, and what is left of them, in
// the format of draft-ietf-httpapi-ratelimit-headers-11 (R. Polli, A. Martinez, D.
// Miller: RateLimit header fields for HTTP): a quota policy for each limit, and a
// service limit for each rule. latelyhttp writes them into header fields, latelygrpc
// into metadata.
package ratelimitheader
