package latelygin_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	latelygin "github.com/lately-go/lately/adapters/gin"
	"github.com/lately-go/lately/internal/test/adaptertest"
	"github.com/lately-go/lately/latelyhttp"
)

// newRouter returns a router with handlers before a route that counts what
// reaches it.
func newRouter(reached *int, handlers ...gin.HandlerFunc) *gin.Engine {
	gin.SetMode(gin.TestMode)
	router := gin.New()
	router.Use(handlers...)
	router.Any("/items/:id", func(c *gin.Context) {
		*reached++
		c.String(http.StatusOK, "item %s", c.Param("id"))
	})
	return router
}

// recovering is a handler that answers panics.
func recovering() gin.HandlerFunc {
	return gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, _ any) { c.AbortWithStatus(http.StatusInternalServerError) })
}

// gin itself believes X-Forwarded-For from anyone; the limits do not.
func TestAdapter(t *testing.T) {
	adaptertest.Run(t, func(_ testing.TB, m *latelyhttp.Middleware, f func()) adaptertest.Send {
		return adaptertest.SendTo(newRouter(new(int), recovering(), latelygin.New(m), func(*gin.Context) { f() }))
	})
}

// TestRefusalAborts has a refused request reach no handler behind the limits, and those before them see that it was aborted.
func TestRefusalAborts(t *testing.T) {
	reached, behind, aborted := 0, 0, 0
	send := adaptertest.SendTo(newRouter(&reached,
		func(c *gin.Context) {
			c.Next()
			if c.IsAborted() {
				aborted++
			}
		},
		latelygin.New(adaptertest.Limits(t, latelyhttp.Config{}, 2, "client")),
		func(*gin.Context) { behind++ }))
	for range 4 {
		send("GET", "/items/1", "192.0.2.1:99")
	}
	if reached != 2 || behind != 2 || aborted != 2 {
		t.Errorf("the handler counted %d, the previous one %d, and %d were aborted, want two of each", reached, behind, aborted)
	}
}

func TestField(t *testing.T) {
	c := latelyhttp.Config{Fields: map[string]func(*http.Request) string{
		"user": latelygin.Field(func(c *gin.Context) string { return c.GetString("user") }),
	}}
	adaptertest.CheckUsers(t, adaptertest.SendTo(newRouter(new(int),
		func(c *gin.Context) { c.Set("user", c.Query("as")) },
		latelygin.New(adaptertest.Limits(t, c, 1, "user")))))
}

// Elsewhere, Field has no context of gin.
func TestFieldElsewhere(t *testing.T) {
	f := latelygin.Field(func(*gin.Context) string { panic("no context") })
	if v := f(httptest.NewRequest("GET", "/", nil)); v != "" {
		t.Errorf("the field is %q", v)
	}
}

// The answers of handlers are counted, including those that panic.
func TestAnswers(t *testing.T) {
	for status, inside := range map[string]gin.HandlerFunc{
		"404": func(c *gin.Context) { c.AbortWithStatus(http.StatusNotFound) },
		"500": func(*gin.Context) { panic("the handler fails") },
		"200": func(*gin.Context) {},
	} {
		adaptertest.CheckAnswers(t, status, adaptertest.SendTo(newRouter(new(int), recovering(), latelygin.New(adaptertest.Answers(t, 2, status)), inside)))
	}
}

func BenchmarkNew(b *testing.B) {
	adaptertest.Benchmark(b, func(limits ...*latelyhttp.Middleware) http.Handler {
		var handlers []gin.HandlerFunc
		for _, m := range limits {
			handlers = append(handlers, latelygin.New(m))
		}
		return newRouter(new(int), handlers...)
	})
}
