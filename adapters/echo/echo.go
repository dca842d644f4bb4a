// Package latelyecho puts a [latelyhttp.Middleware] before handlers of echo.
//
//	limits, err := latelyhttp.New(limiter, latelyhttp.Config{})
//	...
//	e := echo.New()
//	e.Use(latelyecho.New(limits))
//
// Headers, bodies and the identity of clients are those of latelyhttp. In particular
// the client is the peer of the connection unless latelyhttp.Config has proxies:
// echo's RealIP and IPExtractor are not used.
//
// A rule on "pattern" sees echo's route: /items/:id. Within Pre there is none
// yet.
package latelyecho

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/lately-go/lately/latelyhttp"
)

// New returns m as echo middleware, for Use. A refused request is answered, and
// the handlers after this one are not called; an allowed one counts under
// in-flight limits until they have returned or panicked, and its answer is then
// counted by rules that count answers.
//
// It is for any number of Echo instances, and safe for concurrent use. It
// allocates a copy of the request, without its body, for what m's functions may
// look at.
func New(m *latelyhttp.Middleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			r := c.Request()
			lease, ok := m.Allow(c.Response(), r.WithContext(context.WithValue(r.Context(), contextKey{}, c)))
			if !ok {
				return nil // it has been answered
			}
			defer lease.Done()
			err := error(echo.ErrInternalServerError) // if the handlers panic
			defer func() {
				size := int64(0)
				response, status := echo.ResolveResponseStatus(c.Response(), err)
				if response != nil {
					size = response.Size
				}
				lease.Answer(status, size)
			}()
			err = next(c)
			return err
		}
	}
}

// Field makes a function of echo's context one for latelyhttp.Config.Fields, for
// what an earlier middleware has put there, such as a user.
//
//	latelyhttp.Config{Fields: map[string]func(*http.Request) string{
//		"user": latelyecho.Field(func(c *echo.Context) string {
//			user, _ := c.Get("user").(string)
//			return user
//		}),
//	}}
//
// Requests that do not come through New do not have the field.
func Field(f func(*echo.Context) string) func(*http.Request) string {
	return func(r *http.Request) string {
		if c, ok := r.Context().Value(contextKey{}).(*echo.Context); ok {
			return f(c)
		}
		return ""
	}
}

// contextKey is the key in a request's context of echo's.
type contextKey struct{}
