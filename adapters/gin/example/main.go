// Command example serves one route with gin, 5 requests per 10 seconds for each
// client:
//
//	go run ./example
//	curl -i localhost:8080/items/1
package main

import (
	"log"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	latelygin "github.com/lately-go/lately/adapters/gin"
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
	router, err := newRouter()
	if err != nil {
		return err
	}
	server := &http.Server{Addr: addr, Handler: router, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}

func newRouter() (*gin.Engine, error) {
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
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(latelygin.New(limits))
	router.GET("/items/:id", func(c *gin.Context) {
		c.JSON(http.StatusOK, gin.H{"id": c.Param("id")})
	})
	return router, nil
}
