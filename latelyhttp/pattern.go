package latelyhttp

import "net/http"

// PatternOf returns a function for [Config.Fields] that returns the pattern under which
// mux would handle a request, for a middleware around mux:
//
//	latelyhttp.Config{Fields: map[string]func(*http.Request) string{
//		"pattern": latelyhttp.PatternOf(mux),
//	}}
//
// It costs a second search of the routes. Middleware within mux, around one
// handler, does not need it: the request already has its Pattern.
func PatternOf(mux *http.ServeMux) func(*http.Request) string {
	return func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}
}
