package latelyprom_test

import (
	"fmt"
	"log"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lately-go/lately/latelyprom"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func Example() {
	key, err := match.NewKey(match.Fold{}, "client")
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name:   "per-client",
		Key:    key,
		Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}},
	})
	if err != nil {
		log.Fatal(err)
	}
	collector, err := latelyprom.New(limiter, latelyprom.Config{})
	if err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{}) // serve it at /metrics

	var e match.Event
	e.SetString(match.Client, "192.0.2.1")
	for range 3 {
		limiter.Take(&e)
	}
	w := httptest.NewRecorder()
	metrics.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "lately_events_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// lately_events_total{outcome="allowed",rule="per-client"} 2
	// lately_events_total{outcome="banned",rule="per-client"} 0
	// lately_events_total{outcome="refused",rule="per-client"} 1
	// lately_events_total{outcome="shadow",rule="per-client"} 0
	// lately_events_total{outcome="skipped",rule="per-client"} 0
}
