package latelyecho_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	latelyecho "github.com/lately-go/lately/adapters/echo"
	"github.com/lately-go/lately/internal/test/adaptertest"
	"github.com/lately-go/lately/latelyhttp"
)

// newEcho returns an Echo with others before a route that counts what
// reaches it.
func newEcho(reached *int, before ...echo.MiddlewareFunc) *echo.Echo {
	e := echo.New()
	e.Use(before...)
	e.Any("/items/:id", func(c *echo.Context) error {
		*reached++
		return c.String(http.StatusOK, "item "+c.Param("id"))
	})
	return e
}

// inside is middleware that calls f.
func inside(f func()) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			f()
			return next(c)
		}
	}
}

// recovering is middleware that answers panics.
func recovering(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) (err error) {
		defer func() {
			if recover() != nil {
				err = echo.ErrInternalServerError
			}
		}()
		return next(c)
	}
}

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, func(_ testing.TB, m *latelyhttp.Middleware, f func()) adaptertest.Send {
		return adaptertest.SendTo(newEcho(new(int), recovering, latelyecho.New(m), inside(f)))
	})
}

// TestRefusalEndsTheChain has a refused request reach no middleware behind the limits, and those before them see its status.
func TestRefusalEndsTheChain(t *testing.T) {
	reached, behind, statuses := 0, 0, map[int]int{}
	send := adaptertest.SendTo(newEcho(&reached,
		func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				err := next(c)
				r, unwrapErr := echo.UnwrapResponse(c.Response())
				if unwrapErr != nil {
					t.Error(unwrapErr)
					return err
				}
				statuses[r.Status]++ // as a logger sees it
				return err
			}
		},
		latelyecho.New(adaptertest.Limits(t, latelyhttp.Config{}, 2, "client")),
		inside(func() { behind++ })))
	for range 4 {
		send("GET", "/items/1", "192.0.2.1:99")
	}
	if reached != 2 || behind != 2 || statuses[http.StatusOK] != 2 || statuses[http.StatusTooManyRequests] != 2 {
		t.Errorf("the handler counted %d, the middleware before it %d, a logger %v, want two of each", reached, behind, statuses)
	}
}

func TestField(t *testing.T) {
	c := latelyhttp.Config{Fields: map[string]func(*http.Request) string{
		"user": latelyecho.Field(func(c *echo.Context) string {
			user, _ := c.Get("user").(string)
			return user
		}),
	}}
	adaptertest.CheckUsers(t, adaptertest.SendTo(newEcho(new(int),
		func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				c.Set("user", c.QueryParam("as"))
				return next(c)
			}
		},
		latelyecho.New(adaptertest.Limits(t, c, 1, "user")))))
}

// Elsewhere, Field has no context of echo.
func TestFieldElsewhere(t *testing.T) {
	f := latelyecho.Field(func(*echo.Context) string { panic("no context") })
	if v := f(httptest.NewRequest("GET", "/", nil)); v != "" {
		t.Errorf("the field is %q", v)
	}
}

// The answers of handlers are counted, including those that return an error.
func TestAnswers(t *testing.T) {
	for status, inside := range map[string]func() error{
		"404": func() error { return echo.ErrNotFound },
		"500": func() error { return errors.New("the handler fails") },
		"200": func() error { return nil },
	} {
		adaptertest.CheckAnswers(t, status, adaptertest.SendTo(newEcho(new(int), latelyecho.New(adaptertest.Answers(t, 2, status)), func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				if err := inside(); err != nil {
					return err
				}
				return next(c)
			}
		})))
	}
}

func BenchmarkNew(b *testing.B) {
	adaptertest.Benchmark(b, func(limits ...*latelyhttp.Middleware) http.Handler {
		var handlers []echo.MiddlewareFunc
		for _, m := range limits {
			handlers = append(handlers, latelyecho.New(m))
		}
		return newEcho(new(int), handlers...)
	})
}
