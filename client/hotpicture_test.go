package client

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
)

// A shop is an HTTP service whose pages come from a slow backend, in several processes. The
// picture of docs/hot-keys.md has the loads of the backend during a sale: nine in
// ten requests are for one product, and a part of the way through the processes begin to keep
// hot keys. LATELY_UPDATE=1 draws it again.

const (
	shopProcesses = 5
	shopRate      = 50 // requests per second of each process: too few to find the product hot alone
	shopBin       = 100 * time.Millisecond
	saleProduct   = "/product/7"
)

// A backend answers slowly, and counts its requests.
type backend struct {
	start time.Time
	bins  []atomic.Int64 // of loads, by time
	sale  atomic.Int64   // loads of the product on sale
}

func (b *backend) load(_ context.Context, path string) (string, error) {
	if i := int(time.Since(b.start) / shopBin); i < len(b.bins) {
		b.bins[i].Add(1)
	}
	if path == saleProduct {
		b.sale.Add(1)
	}
	time.Sleep(20 * time.Millisecond)
	return "the page of " + path, nil
}

// A shopProcess is the service in one process: with a cache once keep is set.
type shopProcess struct {
	cache *hotkey.Cache[string]
	keep  *atomic.Bool
	back  *backend
}

func (s *shopProcess) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	get := s.back.load
	if s.keep.Load() {
		get = s.cache.Get
	}
	page, err := get(r.Context(), r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	io.WriteString(w, page)
}

func TestLoadOfABackend(t *testing.T) {
	phase := 1500 * time.Millisecond
	update := os.Getenv("LATELY_UPDATE") != ""
	if update {
		phase = 4 * time.Second
	}
	server := startServer(t, listen.Config{})
	back := &backend{bins: make([]atomic.Int64, 2*phase/shopBin), start: time.Now()}
	var keep atomic.Bool
	var clients sync.WaitGroup
	var before, after atomic.Int64 // requests for the product on sale
	var caches []*hotkey.Cache[string]
	for range shopProcesses {
		_, detector := hotFleet(t, FleetConfig{Nodes: []string{server.addr}})
		cache := must.Get(hotkey.NewCache(detector, hotkey.CacheConfig[string]{Rule: "product", Load: back.load}))(t)
		caches = append(caches, cache)
		shop := httptest.NewServer(&shopProcess{cache, &keep, back})
		defer shop.Close()
		clients.Go(func() { visit(t, shop, 2*phase, &keep, &before, &after) })
	}
	time.Sleep(phase)
	keep.Store(true)
	clients.Wait()
	t.Logf("%d requests for the product before, each a load, and %d after, with %d loads", before.Load(), after.Load(), back.sale.Load()-before.Load())
	until(t, "the product is hot in all processes", func() bool {
		for _, c := range caches { // a busy machine may have sampled too rarely
			must.Get(c.Get(t.Context(), saleProduct))(t)
		}
		return !slices.ContainsFunc(caches, coldIn)
	})
	loads := back.sale.Load()
	for range 100 {
		for _, c := range caches {
			must.Get(c.Get(t.Context(), saleProduct))(t)
		}
	}
	if loads = back.sale.Load() - loads; loads > shopProcesses {
		t.Errorf("%d loads for %d requests of %d processes in which the product is hot", loads, 100*shopProcesses, shopProcesses)
	}
	if update {
		picture := drawLoads(back, phase)
		must.Do(t, os.WriteFile("../docs/pictures/hot-keys.svg", []byte(picture), 0o644))
	}
}

func coldIn(c *hotkey.Cache[string]) bool {
	_, _, hot := c.Peek(saleProduct)
	return !hot
}

// visit sends requests to a shop for a time: nine in ten are for the product on sale.
func visit(t *testing.T, shop *httptest.Server, d time.Duration, keep *atomic.Bool, before, after *atomic.Int64) {
	var requests sync.WaitGroup
	defer requests.Wait()
	for i, start := 0, time.Now(); time.Since(start) < d; i++ {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / shopRate)))
		path := saleProduct
		if i%10 == 0 {
			path = fmt.Sprintf("/product/%d", 100+rand.IntN(100_000))
		} else if keep.Load() {
			after.Add(1)
		} else {
			before.Add(1)
		}
		requests.Go(func() {
			answer, err := shop.Client().Get(shop.URL + path)
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			if page, _ := io.ReadAll(answer.Body); string(page) != "the page of "+path {
				t.Errorf("%s: %q", path, page)
			}
		})
	}
}

// drawLoads draws the loads in each bin.
func drawLoads(back *backend, phase time.Duration) string {
	const width, height, left, top, bottom = 760, 300, 56, 84, 40
	most := int64(1)
	for i := range back.bins {
		most = max(most, back.bins[i].Load())
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Loads of the backend before and after hot keys are kept">
<style>text{font:13px system-ui,sans-serif;fill:#1f2328}.card{fill:#fff;stroke:#d1d9e0}.bar{fill:#0969da}.mark{stroke:#8c959f;stroke-dasharray:4}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.card{fill:#0d1117;stroke:#3d444d}.bar{fill:#4493f8}}</style>
<rect class="card" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>
<text x="%d" y="30" font-weight="600">Loads of the backend per second</text>
<text x="%d" y="50">%d processes, %d requests per second, nine in ten for one product</text>
`, width, height, width, height, width-1, height-1, 24, 24, shopProcesses, shopProcesses*shopRate)
	plot, step := float64(height-top-bottom), float64(width-left-24)/float64(len(back.bins))
	for i := range back.bins {
		h := plot * float64(back.bins[i].Load()) / float64(most)
		fmt.Fprintf(&s, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", left+step*float64(i), top+plot-h, step-1, h)
	}
	perSecond := most * int64(time.Second/shopBin)
	middle := left + step*float64(phase/shopBin)
	fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%d</text>
<text x="%d" y="%.0f" text-anchor="end">0</text>
<line class="mark" x1="%.1f" x2="%.1f" y1="%d" y2="%.0f"/>
<text x="%.1f" y="%d">hot keys are kept</text>
<text x="%d" y="%d">0 s</text>
<text x="%d" y="%d" text-anchor="end">%.0f s</text>
</svg>
`, left-6, top+10, perSecond, left-6, top+plot, middle, middle, top-18, top+plot, middle+6, top-6, left, height-16, width-24, height-16, (2 * phase).Seconds())
	return s.String()
}
