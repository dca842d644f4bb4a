package main

import "fmt"

// A claim is an advice of the time wheel's article (O3), with two figures that
// decide whether it holds on this machine.
type claim struct {
	advice   string
	measured string
	holds    bool
}

// article compares the variants that O3 discusses, and its advice with figures.
func (r *report) article() {
	r.text("## What the time wheel's article weighs (O3)")
	r.text("Its variants of one wheel, and what it compares the wheel with. The lock-free variant is its own; sampling counts one event " +
		"in sixteen. 3600 slots are its hour in seconds.")
	r.head("variant", "add, 1 core", "add, all cores", "8 a core", "sum of 60", "bytes, 60 slots", "bytes, 3600 slots", "lost %")
	for _, s := range []string{
		"O3-wheel-slot-locks", "O3-wheel-one-clock-read", "O3-wheel-padded", "O3-wheel-segment-locks", "O3-wheel-lock-free",
		"O3-queue", "O3-sampling", "lately.Counter", "lately.Sampled,1in16", "lately.Sampler,1in16",
	} {
		r.row(label(s), r.ns(place{"Add", 1, nil}, s), r.ns(place{"Add", r.cores, nil}, s), r.ns(place{"AddByEight", r.cores, nil}, s),
			r.ns(place{"Sum", 1, []string{"slots=60"}}, s), r.bytes(s, "60"), r.bytes(s, "3600"),
			r.value(place{"Lost", r.cores, nil}, s, "lost-%"))
	}
	r.end()
	r.head("advice", "measured here", "")
	for _, c := range r.claims() {
		verdict := "does not hold"
		if c.holds {
			verdict = "holds"
		}
		r.row(c.advice, c.measured, verdict)
	}
	r.end()
}

func (r *report) claims() []claim {
	one, all, eight := place{"Add", 1, nil}, place{"Add", r.cores, nil}, place{"AddByEight", r.cores, nil}
	const wheel = "O3-wheel-slot-locks"
	lost := func(s string) float64 { v, _ := r.Median("Lost", r.cores, "lost-%", "subject="+s); return v }
	times := func(p place, a, b string) float64 { v, _ := r.ratio(p, a, b); return v }
	bytes := func(s, slots string) float64 {
		v, _ := r.Median("Bytes", r.cores, "B/window", "slots="+slots, "subject="+s)
		return v
	}
	near, _ := r.Median("FalseSharing", r.cores, "ns/op", "apart=8")
	far, _ := r.Median("FalseSharing", r.cores, "ns/op", "apart=128")
	error10k, _ := r.Median("SamplingError", r.cores, "error-%", "events=10000", "subject=O3-sampling")
	error100, _ := r.Median("SamplingError", r.cores, "error-%", "events=100", "subject=O3-sampling")
	queue, _ := r.Median("Events", r.cores, "B/window", "events=100000", "subject=O3-queue")
	padded, segment, free := times(all, "O3-wheel-padded", wheel), times(all, "O3-wheel-segment-locks", wheel), times(eight, "O3-wheel-lock-free", wheel)
	return []claim{
		{
			"a lock in each slot makes adds safe",
			fmt.Sprintf("%s %% lost; %s %% when the clock is read once: the second reading is the fault, not the lock", digits(lost(wheel)), digits(lost("O3-wheel-one-clock-read"))),
			lost(wheel) == 0,
		},
		{
			"counters of several cores belong on cache lines of their own",
			fmt.Sprintf("two counters on one line %s ns, apart %s ns", digits(near), digits(far)),
			far < 0.8*near,
		},
		{
			"so pad the slots",
			fmt.Sprintf("%s times the time of the unpadded wheel, %s times its bytes: all writers are in one slot", digits(padded), digits(bytes("O3-wheel-padded", "60")/bytes(wheel, "60"))),
			padded < 0.8,
		},
		{
			"sixteen segment locks save memory",
			fmt.Sprintf("%s of the bytes at 60 slots, %s at 3600", digits(bytes("O3-wheel-segment-locks", "60")/bytes(wheel, "60")), digits(bytes("O3-wheel-segment-locks", "3600")/bytes(wheel, "3600"))),
			bytes("O3-wheel-segment-locks", "60") < bytes(wheel, "60"),
		},
		{
			"and cost little speed",
			fmt.Sprintf("%s times the time of a lock a slot, on all cores", digits(segment)),
			segment < 1.2,
		},
		{
			"lock-free slots are the fastest",
			fmt.Sprintf("%s of the locked wheel's time, but %s %% of adds lost; ours takes %s of it and loses %s %%",
				digits(free), digits(lost("O3-wheel-lock-free")), digits(times(eight, "lately.Counter", wheel)), digits(lost("lately.Counter"))),
			free < 1 && times(eight, "lately.Counter", "O3-wheel-lock-free") >= 1,
		},
		{
			"a queue of events is exact, and grows with them",
			fmt.Sprintf("%s bytes for 100,000 events", digits(queue)),
			queue > 100_000*8,
		},
		{
			"sampling saves time at the price of an error",
			fmt.Sprintf("%s of the lock-free wheel's time on one core; off by %s %% at 100 events, %s %% at 10,000", digits(times(one, "O3-sampling", "O3-wheel-lock-free")), digits(error100), digits(error10k)),
			times(one, "O3-sampling", "O3-wheel-lock-free") < 1,
		},
	}
}
