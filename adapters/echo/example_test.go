package latelyecho_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v5"

	latelyecho "github.com/lately-go/lately/adapters/echo"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Five requests per 10 seconds for each client.
func Example() {
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name:   "per-client",
		Key:    match.MustKey("client"),
		Limits: []ratelimit.Limit{{N: 5, Span: 10 * time.Second}},
	})
	if err != nil {
		log.Fatal(err)
	}
	limits, err := latelyhttp.New(limiter, latelyhttp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	e := echo.New()
	e.Use(latelyecho.New(limits))
	e.GET("/items/:id", func(c *echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"id": c.Param("id")})
	})
	for range 6 {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest("GET", "/items/1", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 200
	// 200
	// 200
	// 200
	// 429
}
