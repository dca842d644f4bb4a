// Package middleware has what latelyhttp and latelygrpc have in common: it fills in the
// events of requests, judges them under the rules that the limiter has now, and settles
// their reservations.
package middleware
