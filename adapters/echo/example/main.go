// Command example serves one route with echo, 5 requests per 10 seconds for each
// client:
//
//	go run ./example
//	curl -i localhost:8080/items/1
package main

import (
	"log"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"

	latelyecho "github.com/lately-go/lately/adapters/echo"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func main() {
	if err := run("localhost:8080"); err != nil {
		log.Fatal(err)
	}
}

func run(addr string) error {
	e, err := newEcho()
	if err != nil {
		return err
	}
	server := &http.Server{Addr: addr, Handler: e, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}

func newEcho() (*echo.Echo, error) {
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name:   "per-client",
		Key:    match.MustKey("client"),
		Limits: []ratelimit.Limit{{N: 5, Span: 10 * time.Second}},
	})
	if err != nil {
		return nil, err
	}
	limits, err := latelyhttp.New(limiter, latelyhttp.Config{})
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.Use(latelyecho.New(limits))
	e.GET("/items/:id", func(c *echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"id": c.Param("id")})
	})
	return e, nil
}
