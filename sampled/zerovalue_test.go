package sampled

import (
	"strings"
	"testing"
	"time"
)

// Every method of the zero values panics with a sentence about it, and counts nothing silently.
func TestZeroValues(t *testing.T) {
	for name, call := range map[string]func(){
		"Counter.Add":      func() { new(Counter).Add(1) },
		"Counter.Add(2)":   func() { new(Counter).Add(2) },
		"Counter.AddAt":    func() { new(Counter).AddAt(time.Now(), 1) },
		"Counter.Sum":      func() { new(Counter).Sum() },
		"Counter.SumAt":    func() { new(Counter).SumAt(time.Now()) },
		"Counter.Bounds":   func() { new(Counter).Bounds() },
		"Counter.BoundsAt": func() { new(Counter).BoundsAt(time.Now()) },
		"Counter.Sampler":  func() { new(Counter).Sampler() },
		"Sampler.Add":      func() { new(Sampler).Add(1) },
		"Sampler.AddAt":    func() { new(Sampler).AddAt(time.Now(), 1) },
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, "constructor") {
					t.Errorf("%s panics with %q, or not at all", name, text)
				}
			}()
			call()
		}()
	}
}
