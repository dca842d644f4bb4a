package latelygin_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gin-gonic/gin"

	latelygin "github.com/lately-go/lately/adapters/gin"
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
	router := gin.New()
	router.Use(latelygin.New(limits))
	router.GET("/items/:id", func(c *gin.Context) {
		c.JSON(http.StatusOK, gin.H{"id": c.Param("id")})
	})
	for range 6 {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("GET", "/items/1", nil))
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
