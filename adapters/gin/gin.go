// Package latelygin puts a [latelyhttp.Middleware] before handlers of gin.
//
//	limits, err := latelyhttp.New(limiter, latelyhttp.Config{})
//	...
//	router := gin.New()
//	router.Use(latelygin.New(limits))
//
// Headers, bodies and the identity of clients are those of latelyhttp. In particular
// the client is the peer of the connection unless latelyhttp.Config has proxies:
// gin's ClientIP, which by default trusts the headers of all peers, is not used.
//
// A rule on "pattern" sees gin's route: /items/:id.
package latelygin

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/lately-go/lately/latelyhttp"
)

// New returns m as a gin handler, for Use. A refused request is answered and
// its chain aborted; an allowed one counts under in-flight limits until the
// handlers after this one have returned or panicked, and its answer is then counted
// by rules that count answers.
//
// It is for any number of routers, and safe for concurrent use. It allocates a
// copy of the request, without its body, for what m's functions may look at.
func New(m *latelyhttp.Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		r := c.Request.WithContext(context.WithValue(c.Request.Context(), contextKey{}, c))
		if route := c.FullPath(); route != "" {
			r.Pattern = route
		}
		lease, ok := m.Allow(c.Writer, r)
		if !ok {
			c.Abort()
			return
		}
		defer lease.Done()
		returned := false
		defer func() {
			status := c.Writer.Status()
			if !returned && !c.Writer.Written() {
				status = http.StatusInternalServerError // the handlers have panicked
			}
			lease.Answer(status, int64(max(c.Writer.Size(), 0)))
		}()
		c.Next()
		returned = true
	}
}

// Field makes a function of gin's context one for latelyhttp.Config.Fields, for
// what an earlier handler has put there, such as a user.
//
//	latelyhttp.Config{Fields: map[string]func(*http.Request) string{
//		"user": latelygin.Field(func(c *gin.Context) string { return c.GetString("user") }),
//	}}
//
// Requests that do not come through New do not have the field.
func Field(f func(*gin.Context) string) func(*http.Request) string {
	return func(r *http.Request) string {
		if c, ok := r.Context().Value(contextKey{}).(*gin.Context); ok {
			return f(c)
		}
		return ""
	}
}

// contextKey is the key in a request's context of gin's.
type contextKey struct{}
