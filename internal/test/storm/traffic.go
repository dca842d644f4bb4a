//go:build linux

package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
)

// The keys of calls that are judged. Networks of documentation, since no program enforces bans on them by accident.
var (
	clients  = []string{"192.0.2.1", "192.0.2.2"}
	users    = []string{"ada", "bob"}
	knockers = []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"}
)

// verbs of calls whose decisions are judged.
const (
	verbTake    = "TAKE"
	verbCheck   = "CHECK"
	verbRefund  = "REFUND"
	verbRelease = "RELEASE"
)

// draw draws a call whose decision is judged.
func (c *Config) draw(r *rand.Rand) Call {
	call := Call{Verb: verbCheck, Client: pick(r, clients...), Path: pick(r, "/", "/a", "/b", "/files"), Cost: 1}
	if r.IntN(8) == 0 {
		call.Cost = uint64(1 + r.IntN(3))
	}
	if r.IntN(12) == 0 { // may begin a ban
		call.Client, call.Path = pick(r, knockers...), knockPath
		return call
	}
	if r.IntN(3) == 0 {
		call.User = pick(r, users...)
	}
	if l := &c.Limits[r.IntN(len(c.Limits))]; r.IntN(3) > 0 {
		call.Verb, call.Rule, call.Key = verbTake, l.Name, call.Client
		if l.Key == "user" {
			call.Key = pick(r, users...)
		}
		call.Client, call.User, call.Path = "", "", ""
		if r.IntN(10) == 0 {
			call.Verb = verbRefund
			if l.Versions[0].Algorithm == "in-flight" {
				call.Verb = verbRelease
			}
		}
	}
	return call
}

// command returns c as a command.
func (c *Call) command() []string {
	var args []string
	if c.Rule != "" {
		args = []string{c.Verb, c.Rule, c.Key}
	} else {
		args = []string{c.Verb, "client", c.Client, "path", c.Path}
		if c.User != "" {
			args = append(args, "user", c.User)
		}
	}
	if c.Cost > 1 {
		args = append(args, "COST", strconv.FormatUint(c.Cost, 10))
	}
	return args
}

// fields returns the fields of an event.
func (c *Call) fields() map[string]string {
	f := map[string]string{"client": c.Client, "path": c.Path}
	if c.User != "" {
		f["user"] = c.User
	}
	return f
}

// viaRESP sends calls over connections to one server after the other, many at a time.
func (r *run) viaRESP(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		s := r.servers[random.IntN(len(r.servers))]
		c, err := s.dial()
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		for range 1 + random.IntN(30) {
			if ctx.Err() != nil || !r.pipeline(s, c, random) {
				break
			}
			time.Sleep(time.Duration(random.IntN(12)) * time.Millisecond)
		}
		c.Close()
	}
}

// pipeline sends some calls at once; it reports whether the connection can be used further.
func (r *run) pipeline(s *server, c *conn, random *rand.Rand) bool {
	calls := make([]Call, 1+random.IntN(1+random.IntN(16)))
	for i := range calls {
		calls[i] = r.Config.draw(random)
		calls[i].Server, calls[i].Life, calls[i].By = s.index, s.alive(), "RESP"
		c.queue(calls[i].command()...)
	}
	start := r.now()
	err := c.send()
	for i := range calls {
		calls[i].Start = start
		if !broken(err) {
			values, failed := c.next()
			calls[i].decided(values, failed)
			err = failed
		} else {
			calls[i].Text = err.Error()
		}
		calls[i].End = r.now()
		r.history.add(calls[i])
	}
	return !broken(err)
}

// viaHTTP makes requests, each with one call or several.
func (r *run) viaHTTP(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		s := r.servers[random.IntN(len(r.servers))]
		calls := make([]Call, 1+random.IntN(1+random.IntN(8)))
		takes := random.IntN(2) == 0
		for i := range calls {
			verb := verbCheck
			if takes {
				verb = verbTake
			}
			for calls[i] = r.Config.draw(random); calls[i].Verb != verb; {
				calls[i] = r.Config.draw(random)
			}
			calls[i].Server, calls[i].Life, calls[i].By = s.index, s.alive(), "HTTP"
		}
		path, body := requestOf(calls)
		start := r.now()
		code, text, err := s.request(http.MethodPost, path, "application/json", body)
		end := r.now()
		var results api.Results
		if err == nil && code == http.StatusOK {
			err = json.Unmarshal([]byte(text), &results)
		}
		for i := range calls {
			calls[i].Start, calls[i].End = start, end
			switch {
			case err != nil:
				calls[i].Text = err.Error()
			case i >= len(results.Decisions) || results.Decisions[i].Decision == nil:
				calls[i].Text = fmt.Sprint(code, " ", text)
			default:
				d := results.Decisions[i]
				calls[i].judged(d.Allowed, d.Rule, int64(d.BannedUntil))
			}
			r.history.add(calls[i])
		}
		time.Sleep(time.Duration(1+random.IntN(15)) * time.Millisecond)
	}
}

// requestOf returns the request with calls, which all have one verb.
func requestOf(calls []Call) (path string, body []byte) {
	var takes api.TakeRequest
	var checks api.CheckRequest
	for i := range calls {
		c := &calls[i]
		if c.Rule != "" {
			takes.Takes = append(takes.Takes, api.TakeItem{Rule: c.Rule, Key: api.KeyOf(c.Key), Cost: &c.Cost})
		} else {
			checks.Events = append(checks.Events, api.CheckItem{Event: c.fields(), Cost: &c.Cost})
		}
	}
	path, of := "/v1/take", any(takes)
	if len(checks.Events) > 0 {
		path, of = "/v1/check", checks
	}
	body, err := json.Marshal(of)
	if err != nil {
		panic(err) // types of our own
	}
	return path, body
}

// viaGo makes calls with the Go client.
func (r *run) viaGo(ctx context.Context, random *rand.Rand) {
	var all []*client.Client
	for _, s := range r.servers {
		c, err := client.New(s.url(""), client.Config{Token: r.token, HTTPClient: s.client, Timeout: patience})
		if err != nil {
			r.fail("client", err.Error(), nil)
			return
		}
		all = append(all, c)
	}
	for ctx.Err() == nil {
		s := r.servers[random.IntN(len(r.servers))]
		if random.IntN(4) == 0 {
			r.report(all, s, random)
		}
		c := r.Config.draw(random)
		c.Server, c.Life, c.By, c.Start = s.index, s.alive(), "Go", r.now()
		switch c.Verb {
		case verbRefund:
			_, err := all[s.index].Refund(context.Background(), c.Rule, c.Cost, c.Key)
			c.End = r.now()
			c.answered(false, "", time.Time{}, err)
		case verbRelease:
			_, err := all[s.index].Release(context.Background(), c.Rule, c.Cost, c.Key)
			c.End = r.now()
			c.answered(false, "", time.Time{}, err)
		case verbTake:
			if random.IntN(3) == 0 && r.Config.settles(c.Rule) {
				r.reserve(all[s.index], s, &c, random)
				break
			}
			d, err := all[s.index].Take(context.Background(), c.Rule, c.Cost, c.Key)
			c.End = r.now()
			c.answered(d.Allowed, d.Rule, d.BannedUntil, err)
		default:
			d, err := all[s.index].Check(context.Background(), c.fields(), c.Cost)
			c.End = r.now()
			c.answered(d.Allowed, d.Rule, d.BannedUntil, err)
		}
		r.history.add(c)
		time.Sleep(time.Duration(1+random.IntN(15)) * time.Millisecond)
	}
}

// settles reports whether a reservation under a rule can be settled to a cost: under in-flight,
// settling ends the event.
func (c *Config) settles(rule string) bool {
	return !slices.ContainsFunc(c.Limits, func(l Limit) bool { return l.Name == rule && l.Versions[0].Algorithm == "in-flight" })
}

// reserve reserves for a call, and settles it twice with its cost, which is no more. It is judged as a call with that cost:
// an amount given back in excess is used by others beyond the limit. The second settlement does nothing, in the same life.
func (r *run) reserve(all *client.Client, s *server, c *Call, random *rand.Rand) {
	ctx := context.Background()
	held, err := all.Reserve(ctx, c.Rule, c.Cost, 0, c.Key)
	c.End = r.now()
	c.answered(held.Decision.Allowed, held.Decision.Rule, held.Decision.BannedUntil, err)
	if err != nil || !held.Decision.Allowed {
		return
	}
	actual := 1 + random.Uint64N(c.Cost)
	first, err := all.Settle(ctx, held.ID, actual)
	if err != nil {
		return
	}
	c.Cost = actual
	second, err := all.Settle(ctx, held.ID, actual)
	if err == nil && first && second && s.alive() == c.Life && !r.Config.Outages && !r.Config.Restores { // a store that has lost keys lacks it
		r.fail("reservations", "a reservation is settled twice: "+held.ID, nil)
	}
}

// report requests the id of a decision, and reports its outcome several times, at any servers: it counts once.
func (r *run) report(all []*client.Client, s *server, random *rand.Rand) {
	ctx, key := context.Background(), fmt.Sprintf("spare-reported-%x", random.Uint64())
	other := r.servers[random.IntN(len(r.servers))]
	lives := [2]int{s.alive(), other.alive()}
	d, id, err := all[s.index].CheckID(ctx, map[string]string{"agent": key, "path": "/spare"}, 1, 0)
	if err != nil || !d.Allowed {
		return
	}
	if id == "" {
		r.fail("outcomes", "a decision has no id", nil)
		return
	}
	counted := false
	for i := range 3 {
		of := all[[...]int{s.index, other.index, s.index}[i]]
		failed := api.OutcomeItem{ID: id, Event: map[string]string{"status": "401"}}
		results, err := of.Outcome(ctx, failed, failed)
		counted = counted || err == nil && results[0].Error == nil
	}
	now, err := all[s.index].Peek(ctx, reported, 1, key)
	c := r.Config
	forgets := c.Outages || c.Restores || c.Away || c.Stops || c.Store && c.StoreTimeout != slow // then each server counts it
	if err != nil || forgets || lives != [2]int{s.alive(), other.alive()} {
		return
	}
	if used := mostReported - 1 - now.Remaining; now.Allowed && now.Limit == mostReported && (used > 1 || used == 0 && counted && !c.Store) {
		r.fail("outcomes", fmt.Sprintf("an outcome that was reported six times by its id counts %d times", used), nil)
	}
}

// answered records what the Go client returned.
func (c *Call) answered(allowed bool, rule string, until time.Time, err error) {
	if err != nil {
		c.Text = err.Error()
		return
	}
	bannedUntil := int64(0)
	if !until.IsZero() {
		bannedUntil = until.UnixMilli()
	}
	c.judged(allowed, rule, bannedUntil)
}
