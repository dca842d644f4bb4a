package latelyfiber_test

import (
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/gofiber/fiber/v3"

	latelyfiber "github.com/lately-go/lately/adapters/fiber"
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
	app := fiber.New()
	app.Use(latelyfiber.New(limits))
	app.Get("/items/:id", func(c fiber.Ctx) error {
		return c.JSON(map[string]string{"id": c.Params("id")})
	})
	for range 6 {
		r, err := app.Test(httptest.NewRequest("GET", "/items/1", nil))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.StatusCode)
	}
	// Output:
	// 200
	// 200
	// 200
	// 200
	// 200
	// 429
}
