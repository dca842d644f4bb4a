// Command example serves one route with fiber, 5 requests per 10 seconds for each
// client:
//
//	go run ./example
//	curl -i localhost:8080/items/1
package main

import (
	"log"
	"time"

	"github.com/gofiber/fiber/v3"

	latelyfiber "github.com/lately-go/lately/adapters/fiber"
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
	app, err := newApp()
	if err != nil {
		return err
	}
	return app.Listen(addr)
}

func newApp() (*fiber.App, error) {
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
	app := fiber.New(fiber.Config{ReadTimeout: 5 * time.Second})
	app.Use(latelyfiber.New(limits))
	app.Get("/items/:id", func(c fiber.Ctx) error {
		return c.JSON(map[string]string{"id": c.Params("id")})
	})
	return app, nil
}
