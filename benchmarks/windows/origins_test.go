package windows

import (
	"time"

	"github.com/lately-go/lately/benchmarks/baseline"
)

// The designs that the product grew from; see package baseline.
var origins = []subject{
	{"O1-ring-synchronized", func(n int, w time.Duration) adder { return ring{baseline.NewRing(n, w)} }, sliding},
	{"O2-access-counter", func(n int, w time.Duration) adder { return baseline.NewAccess(n, w) }, sliding},
	{"O3-wheel-slot-locks", func(n int, w time.Duration) adder { return baseline.NewWheel(n, w) }, sliding},
	{"O3-wheel-one-clock-read", func(n int, w time.Duration) adder { return baseline.NewRepairedWheel(n, w) }, sliding},
	{"O3-wheel-padded", func(n int, w time.Duration) adder { return baseline.NewPaddedWheel(n, w) }, sliding},
	{"O3-wheel-segment-locks", func(n int, w time.Duration) adder { return baseline.NewSegmentWheel(n, w) }, sliding},
	{"O3-wheel-lock-free", func(n int, w time.Duration) adder { return baseline.NewFreeWheel(n, w) }, sliding},
	{"O3-queue", func(n int, w time.Duration) adder { return baseline.NewQueue(n, w) }, sliding},
	{"O3-sampling", func(n int, w time.Duration) adder { return baseline.NewSamplingWheel(n, w) }, inexact},
	{"O4-mutex", func(n int, w time.Duration) adder { return cells{baseline.NewCells(n, w)} }, sliding},
	{"O5-mutex", func(n int, w time.Duration) adder { return ticks{baseline.NewTicks(n, w)} }, sliding},
}

type ring struct{ *baseline.Ring }

func (w ring) Add() { w.Ring.Add() }

type cells struct{ *baseline.Cells }

func (w cells) AddAt(t time.Time) { w.Cells.AddAt(t.UnixNano(), 1) }

type ticks struct{ *baseline.Ticks }

func (w ticks) AddAt(t time.Time) { w.Ticks.AddAt(t.UnixNano(), 1) }
