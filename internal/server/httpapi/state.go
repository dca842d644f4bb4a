package httpapi

import (
	"runtime/metrics"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
)

type rateList struct {
	Rates []engine.Rate `json:"rates"`
	Marks []engine.Mark `json:"marks" doc:"starts and reloads in the span, the oldest first"`
}

func listRates(c *call) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	d, err := span(q, time.Minute)
	if err != nil {
		return err
	}
	points, err := number(q, "points", 60, 1, 1440)
	if err != nil {
		return err
	}
	rules, err := number(q, "rules", 0, 0, 1)
	if err != nil {
		return err
	}
	rates, err := c.s.engine.Rates(d, points, rules == 1)
	if err != nil {
		return err
	}
	for i := range rates {
		rates[i].From, rates[i].To = rates[i].From.UTC(), rates[i].To.UTC()
	}
	marks := append([]engine.Mark{}, c.s.engine.Marks(d)...)
	for i := range marks {
		marks[i].Time = marks[i].Time.UTC()
	}
	return c.answer(rateList{append([]engine.Rate{}, rates...), marks})
}

type hotKey struct {
	Rule string `json:"rule"`
	keyText
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

type hotList struct {
	Hot []hotKey `json:"hot"`
}

func listHot(c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	list := hotList{[]hotKey{}}
	for _, h := range c.s.engine.Hot() {
		list.Hot = append(list.Hot, hotKey{h.Rule, keyTextOf(h.Key), h.Since.UTC(), h.Until.UTC()})
	}
	return c.answer(list)
}

// A keyAnswer is what is known of one key.
type keyAnswer struct {
	Fields []string `json:"fields"`
	keyText
	Counters []keyWindow   `json:"counters"`
	Rules    []keyDecision `json:"rules"`
	Bans     []ban         `json:"bans"`
}

type keyWindow struct {
	Counter string `json:"counter"`
	Span    int64  `json:"span_ms"`
	bounds
	Slots []slot `json:"slots" doc:"all that have a part in the window, the oldest first; the window begins in the first, which counts in hi alone: they add up to hi"`
}

type slot struct {
	Start time.Time `json:"start"`
	Count uint64    `json:"count"`
}

type keyDecision struct {
	Rule     string   `json:"rule"`
	Decision decision `json:"decision" doc:"what the rule would say of the key's next event"`
}

func aboutKey(c *call) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	r, err := c.s.engine.Key(q["field"], q["value"])
	if err != nil {
		return err
	}
	a := keyAnswer{Fields: r.Fields, keyText: keyTextOf(r.Key), Counters: []keyWindow{}, Rules: []keyDecision{}, Bans: bansOf(r.Bans)}
	for _, w := range r.Counters {
		kw := keyWindow{w.Counter, w.Span.Milliseconds(), bounds{w.Lo, w.Hi}, []slot{}}
		for _, s := range w.Slots {
			kw.Slots = append(kw.Slots, slot{s.Start.UTC(), s.Count})
		}
		a.Counters = append(a.Counters, kw)
	}
	for _, d := range r.Rules {
		a.Rules = append(a.Rules, keyDecision{d.Rule, decisionOf(&d.Decision)})
	}
	return c.answer(&a)
}

// A status is what the server says of itself.
type status struct {
	Version     string        `json:"version"`
	Started     time.Time     `json:"started"`
	Uptime      int64         `json:"uptime_s"`
	Now         int64         `json:"now_ms" doc:"the time by which it judges, since 1970: its clock's, or in event time that of the newest event"`
	EventTime   bool          `json:"event_time" doc:"it judges by the times that events bring"`
	Totals      engine.Totals `json:"totals"`
	Memory      memory        `json:"memory"`
	Bans        banCounts     `json:"bans"`
	Subscribers int           `json:"subscribers"`
	Rules       rulesState    `json:"rules"`
	Storage     storageState  `json:"storage"`
	Role        string        `json:"role" doc:"of the one who asks"`
}

type memory struct {
	Budget   int64  `json:"budget" doc:"for limits and bans, in bytes; 0 or less means none"`
	Bytes    int64  `json:"bytes" doc:"used of it"`
	Reserved int64  `json:"reserved" doc:"kept free in it for bans by hand and for keys that do not fit"`
	Counters int64  `json:"counter_bytes"`
	Heap     uint64 `json:"heap"`
}

type banCounts struct {
	Held       uint64 `json:"held"`
	Remembered uint64 `json:"remembered"`
	Refused    uint64 `json:"refused" doc:"for want of room"`
}

type rulesState struct {
	File    string    `json:"file"`
	Since   time.Time `json:"since"`
	Reloads uint64    `json:"reloads"`
	Error   *string   `json:"error"`
}

func about(c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	s := c.s.engine.Status()
	a := status{
		Version: c.s.config.Version, Started: s.Started.UTC(), Uptime: int64(time.Since(s.Started) / time.Second), Now: s.Now.UnixMilli(), EventTime: s.EventTime,
		Totals: s.Totals, Memory: memory{Budget: s.Limits.Budget, Bytes: s.Limits.Bytes, Reserved: s.Limits.Reserved, Heap: heap()},
		Bans:        banCounts{s.Limits.Bans, s.Limits.Remembered, s.Limits.BansRefused},
		Subscribers: s.Subscribers,
		Rules:       rulesState{s.RulesFile, s.RulesSince.UTC(), s.Reloads, errorText(s.RulesError)},
		Storage:     c.s.storageState(),
		Role:        c.role.String(),
	}
	for i := range c.s.engine.Counters() {
		a.Memory.Counters += i.Stats.Bytes
	}
	return c.answer(&a)
}

// heap returns the bytes of all objects, without stopping the program for it.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

func alive(c *call) error {
	c.out = append(c.out[:0], "ok\n"...)
	return c.send(200, plainType)
}

func ready(c *call) error {
	if c.s.draining.Load() {
		return &engine.Error{Code: engine.Overload, Message: "the server is about to end"}
	}
	if c.s.config.Ready != nil {
		if err := c.s.config.Ready(); err != nil {
			return &engine.Error{Code: engine.Overload, Message: err.Error()}
		}
	}
	return alive(c)
}

var plainType = []string{"text/plain; charset=utf-8"}
