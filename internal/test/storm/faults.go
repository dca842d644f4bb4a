//go:build linux

package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// disturbProcesses stops, kills, terminates and starts servers until ctx ends. At its end all run.
func (r *run) disturbProcesses(ctx context.Context, random *rand.Rand) {
	var faults []func(*server)
	for range 2 {
		if r.Config.Stops {
			faults = append(faults, func(s *server) { r.stop(s, time.Duration(50+random.IntN(1000))*time.Millisecond) })
		}
	}
	if r.Config.FullDisks {
		faults = append(faults, func(s *server) { r.fillDisk(s, time.Duration(100+random.IntN(900))*time.Millisecond) })
	}
	if r.Config.Descriptors {
		faults = append(faults, func(s *server) { r.useDescriptors(s, random, time.Duration(50+random.IntN(500))*time.Millisecond) })
	}
	if r.Config.Kills {
		faults = append(faults, func(s *server) { r.restart(s, killed, time.Duration(random.IntN(150))*time.Millisecond) })
	}
	if r.Config.Ends {
		faults = append(faults, func(s *server) { r.restart(s, ended, time.Duration(random.IntN(150))*time.Millisecond) })
	}
	for wait(ctx, time.Duration(100+random.IntN(500))*time.Millisecond) && len(faults) > 0 {
		pick(random, faults...)(r.servers[random.IntN(len(r.servers))])
	}
}

// wait waits, and reports whether ctx has not ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// stop stops a process for a time.
func (r *run) stop(s *server, d time.Duration) {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	m := r.history.begin(s.index, stopped, "")
	s.signal(syscall.SIGSTOP)
	time.Sleep(d)
	s.signal(syscall.SIGCONT)
	r.history.end(m)
}

// restart ends a process and starts it again.
func (r *run) restart(s *server, how markKind, pause time.Duration) {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	m := r.history.begin(s.index, how, "")
	if how == killed {
		s.kill()
	} else {
		s.terminate()
	}
	time.Sleep(pause)
	s.file.Lock() // it reads the file
	defer s.file.Unlock()
	if err := s.start(); err != nil {
		r.fail("start", err.Error(), nil)
	}
	r.history.inForce(s.index)
	r.history.end(m)
}

// reload puts versions of the rules file in force, on one server after the other, so that for
// some time they differ.
func (r *run) reload(ctx context.Context, random *rand.Rand) {
	for wait(ctx, time.Duration(100+random.IntN(500))*time.Millisecond) {
		version := random.IntN(versions)
		m := r.history.begin(everyServer, reloaded, fmt.Sprint("to version ", version))
		for _, i := range random.Perm(len(r.servers)) {
			s := r.servers[i]
			r.writeRules(s, version)
			switch {
			case r.Config.Poll && random.IntN(3) == 0:
			case random.IntN(6) == 0:
				s.hangUp()
			default:
				r.reloadNow(s)
			}
			if i+1 < len(r.servers) {
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			}
		}
		r.history.end(m)
	}
}

// writeRules replaces the rules file of a server by a version.
func (r *run) writeRules(s *server, version int) {
	s.file.Lock()
	defer s.file.Unlock()
	r.history.write(s.index, version)
	if err := s.write(version); err != nil {
		r.fail("storm", err.Error(), nil)
	}
}

// reloadNow has a server read its rules file.
func (r *run) reloadNow(s *server) {
	call := Call{Verb: "reload", Server: s.index, Life: s.alive(), By: "HTTP", Start: r.now()}
	code, text, err := s.request(http.MethodPost, "/v1/rules/reload", "application/json", []byte("{}"))
	if call.Answered, call.Text = err == nil && code == http.StatusOK, text; err != nil {
		call.Text = err.Error()
	}
	call.End = r.now()
	if call.Answered {
		r.history.inForce(s.index)
	}
	r.history.add(call)
}

// disturbStore keeps servers from the store, has it stop, and restarts it empty, until ctx ends. At
// its end all servers reach the store.
func (r *run) disturbStore(ctx context.Context, random *rand.Rand) {
	for wait(ctx, time.Duration(100+random.IntN(900))*time.Millisecond) {
		d := time.Duration(50+random.IntN(900)) * time.Millisecond
		switch n := random.IntN(6); {
		case n == 0 && r.Config.Restores:
			r.restartStore(d / 2)
		case !r.Config.Outages:
		case n == 1:
			m := r.history.begin(everyServer, away, "stopped")
			r.store.Process().Signal(syscall.SIGSTOP)
			time.Sleep(d)
			r.store.Process().Signal(syscall.SIGCONT)
			r.history.end(m)
		default:
			r.partition(random, d)
		}
	}
}

// restartStore kills the redis-server and starts it again, empty.
func (r *run) restartStore(pause time.Duration) {
	m := r.history.begin(everyServer, restored, "")
	r.store.Kill()
	time.Sleep(pause)
	if err := r.store.Run(); err != nil {
		r.fail("storm", err.Error(), nil)
	}
	r.history.end(m)
}

// partition changes the mode of the proxy of one server, or of all, for a time.
func (r *run) partition(random *rand.Rand, d time.Duration) {
	does := pick(random, cuts, holds, delays, damages)
	delay := time.Duration(1+random.IntN(40)) * time.Millisecond
	all := random.IntN(3) == 0
	chosen := random.IntN(len(r.servers))
	var each sync.WaitGroup
	for _, s := range r.servers {
		if !all && s.index != chosen {
			continue
		}
		each.Go(func() {
			m := r.history.begin(s.index, away, does.String())
			s.proxy.set(does, delay)
			time.Sleep(d)
			s.proxy.set(passes, 0)
			r.history.end(m)
		})
	}
	each.Wait()
}

// watch reads the readiness and the status of each server, until ctx ends.
func (r *run) watch(ctx context.Context, s *server) {
	for n := 0; wait(ctx, 60*time.Millisecond); n++ {
		call := Call{Verb: "/readyz", By: "HTTP", Server: s.index, Life: s.alive(), Start: r.now()}
		code, text, err := s.get("/readyz")
		call.End = r.now()
		call.Answered, call.Allowed, call.Text = err == nil, code == http.StatusOK, strings.TrimSpace(text)
		if err != nil {
			call.Text = err.Error()
		}
		r.history.add(call)
		if n%3 == 0 && r.Config.Store {
			if n, err := s.metric("lately_fallbacks_total", ""); err == nil && n > 0 {
				r.history.fellBack(s.index)
			}
		}
		s.watchMemory()
	}
}
