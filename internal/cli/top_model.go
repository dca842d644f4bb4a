package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// A topModel is the state of the live view: the last answers of the server, and what the
// user wants to see of them. Everything that happens is a message, even the time.
type topModel struct {
	ask     func(topWant) tea.Cmd // reads from the server
	inspect func(*topDetail) tea.Cmd
	act     func(topAction) tea.Cmd
	addr    string
	paint   topPaint

	width, height int
	now           time.Time
	apart         time.Duration // how far the server's clock is ahead of ours

	live   bool      // events arrive
	lost   error     // why they do not
	lostAt time.Time // when they stopped
	fatal  error     // why the view ended

	want    topWant
	owed    bool        // a whole reading was requested, and none has arrived since
	reading *topReading // the last one; nil before the first
	unread  error       // why the last one failed
	rules   []api.Rule
	seconds []api.Totals // of the last two minutes, oldest first

	sort    topSort
	filter  string
	editing bool
	paused  bool
	help    bool
	focus   topPanel
	cursor  int        // the chosen line of the panel that has the focus
	detail  *topDetail // the key that is inspected, or nil
	prompt  *topPrompt // the question that is open, or nil
	notice  string     // the answer to the last key
}

// The messages of a topModel, besides keys and sizes.
type (
	topTick struct{ now time.Time }
	topPoll struct{ turn int } // the next reading is due
	topRead struct {
		want    topWant
		reading *topReading
		err     error // why there is none
	}
	topEvent struct{ api.Event }
	topLost  struct {
		err error
		at  time.Time
	}
)

const (
	// pollEvery is the time from an answer until the next request.
	pollEvery = 2 * time.Second

	// clocksAgree is the difference below which two clocks count as equal: the uptime
	// of a server is in whole seconds.
	clocksAgree = 3 * time.Second

	keptSeconds = 120
	maxFilter   = 64
)

// A topSort is an order of lines.
type topSort int

const (
	byRefused topSort = iota
	byCount
	byName
	topSorts
)

func (s topSort) String() string { return [topSorts]string{"refused", "count", "name"}[s] }

// topSpans are the spans of the keys 1 to 6.
var topSpans = [...]time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, time.Hour, 24 * time.Hour}

func newTopModel(addr string, want topWant, paint topPaint) *topModel {
	return &topModel{addr: addr, want: want, paint: paint}
}

// Init starts the clock.
func (m *topModel) Init() tea.Cmd { return tick() }

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(now time.Time) tea.Msg { return topTick{now} })
}

// Update handles a message.
func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case topTick:
		m.now = msg.now
		return m, tick()
	case topPoll:
		if msg.turn == m.want.turn && m.live && !m.paused {
			return m, tea.Batch(m.askFor(false), m.askDetail())
		}
	case topRead:
		if msg.want.turn != m.want.turn || m.paused {
			break
		}
		if m.unread = msg.err; msg.err == nil {
			before, was := m.chosen()
			m.read(msg.reading)
			m.followCursor(before, was)
		}
		return m, m.later()
	case topEvent:
		return m, m.event(&msg.Event)
	case topLost:
		if m.live || m.lost == nil {
			m.lostAt = msg.at
		}
		m.live, m.lost = false, msg.err
		if refusal, ok := errors.AsType[*client.Error](msg.err); ok && !refusal.Temporary() {
			m.fatal = msg.err
			return m, tea.Quit
		}
	case topInspected:
		if msg.detail == m.detail { // it is shown still
			if m.detail.err = msg.err; msg.err == nil {
				m.detail.report = msg.report
			}
		}
	case topDone:
		m.notice = msg.notice
		if m.live && !m.paused {
			return m, tea.Batch(m.askNow(false), m.askDetail())
		}
	}
	return m, nil
}

// theirs returns the time of the server's clock, by which bans end.
func (m *topModel) theirs() time.Time { return m.now.Add(m.apart) }

// askNow requests a reading; answers to older requests are ignored.
func (m *topModel) askNow(whole bool) tea.Cmd {
	m.want.turn++
	return m.askFor(whole)
}

func (m *topModel) askFor(whole bool) tea.Cmd {
	m.owed = m.owed || whole
	w := m.want
	w.whole = m.owed
	return m.ask(w)
}

// later schedules the next reading.
func (m *topModel) later() tea.Cmd {
	turn := m.want.turn
	return tea.Tick(pollEvery, func(time.Time) tea.Msg { return topPoll{turn} })
}

// read handles a reading.
func (m *topModel) read(r *topReading) {
	m.reading = r
	if m.now.Before(r.at) {
		m.now = r.at
	}
	m.apart = r.status.Started.Add(uptime(r)).Sub(r.at)
	if m.apart.Abs() < clocksAgree {
		m.apart = 0
	}
	if r.note != "" {
		m.notice = r.note
	}
	if !r.want.whole {
		return
	}
	m.owed = false
	m.rules = r.rules
	m.seconds = m.seconds[:0]
	for _, rate := range r.minute {
		m.second(perSecond(rate))
	}
}

// perSecond returns the mean decisions per second of a period.
func perSecond(r api.Rate) api.Totals {
	seconds := max(r.To.Sub(r.From).Seconds(), 0.1)
	share := func(n uint64) uint64 { return uint64(float64(n)/seconds + 0.5) }
	return api.Totals{
		Allowed: share(r.All.Allowed), Refused: share(r.All.Refused), Banned: share(r.All.Banned),
		Unmatched: share(r.All.Unmatched), Errors: share(r.All.Errors),
	}
}

// second adds a second to the chart.
func (m *topModel) second(t api.Totals) {
	if len(m.seconds) >= keptSeconds {
		m.seconds = slices.Delete(m.seconds, 0, len(m.seconds)-keptSeconds+1)
	}
	m.seconds = append(m.seconds, t)
}

// event handles an event of the server.
func (m *topModel) event(e *api.Event) tea.Cmd {
	if e.Type == client.Connected {
		m.live, m.lost = true, nil
		if m.paused {
			return nil
		}
		return m.askNow(true)
	}
	if m.paused {
		return nil // resuming reads everything
	}
	switch e.Type {
	case api.RatesTick:
		if e.All != nil {
			m.second(*e.All)
		}
	case api.RulesChanged:
		return m.askNow(true)
	}
	if m.reading == nil {
		return nil
	}
	switch r := m.reading; e.Type {
	case api.BanStarted:
		if e.Ban != nil {
			r.removeBan(e.Ban.Rule, e.Ban.Values())
			r.bans = slices.Insert(r.bans, 0, *e.Ban)[:min(len(r.bans)+1, topBans)]
			r.held++
		}
	case api.BanEnded:
		r.removeBan(e.Rule, e.Values())
	case api.KeyHot:
		r.hot = slices.DeleteFunc(r.hot, func(h api.HotKey) bool { return h.Rule == e.Rule && slices.Equal(h.Values(), e.Values()) })
		r.hot = slices.Insert(r.hot, 0, api.HotKey{Rule: e.Rule, Key: e.Key, Since: e.Time, Until: e.Until})
	}
	return nil
}

// removeBan removes a ban from the list.
func (r *topReading) removeBan(rule string, key []string) {
	before := len(r.bans)
	r.bans = slices.DeleteFunc(r.bans, func(b api.Ban) bool { return b.Rule == rule && slices.Equal(b.Values(), key) })
	r.held -= before - len(r.bans)
}

// key handles a key.
func (m *topModel) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if m.prompt != nil {
		return m.answer(k)
	}
	if m.editing {
		m.edit(k)
		m.holdCursor()
		return nil
	}
	m.notice = ""
	switch name {
	case "q":
		return tea.Quit
	case "esc":
		m.back()
	case "tab":
		m.turnFocus(1)
	case "shift+tab":
		m.turnFocus(-1)
	case "down", "j":
		m.moveCursor(1)
	case "up", "k":
		m.moveCursor(-1)
	case "pgdown":
		m.moveCursor(10)
	case "pgup":
		m.moveCursor(-10)
	case "enter":
		return m.inspectChosen()
	case "b":
		m.startPrompt(true)
	case "u":
		m.startPrompt(false)
	case "?":
		m.help = !m.help
	case "s":
		m.sort = (m.sort + 1) % topSorts
	case "/":
		m.editing, m.help = true, false
	case "p", "space":
		return m.pause()
	case "c":
		return m.nextCounter()
	case "1", "2", "3", "4", "5", "6":
		return m.setSpan(topSpans[name[0]-'1'])
	}
	return nil
}

// back leaves the help, the key that is inspected, the focus or the filter.
func (m *topModel) back() {
	switch {
	case m.help:
		m.help = false
	case m.detail != nil:
		m.detail = nil
	case m.focus != noPanel:
		m.focus = noPanel
	default:
		m.filter = ""
	}
}

// pause stops or resumes the view.
func (m *topModel) pause() tea.Cmd {
	m.paused = !m.paused
	if m.paused || !m.live {
		return nil
	}
	return m.askNow(true)
}

// nextCounter shows the keys of another counter.
func (m *topModel) nextCounter() tea.Cmd {
	if m.reading == nil || len(m.reading.counters) < 2 {
		m.notice = "there is no other counter"
		return nil
	}
	all := m.reading.counters
	m.want.counter = all[(m.reading.counterIndex()+1)%len(all)].Name
	return m.changed()
}

// setSpan looks back for another span, at most the longest of the counter.
func (m *topModel) setSpan(span time.Duration) tea.Cmd {
	if m.reading != nil {
		if i := m.reading.counterIndex(); i >= 0 && span > longest(&m.reading.counters[i]) {
			c := &m.reading.counters[i]
			m.notice = fmt.Sprintf("counter %s has up to %s", c.Name, rulevalue.FormatDuration(longest(c)))
			return nil
		}
	}
	m.want.span = span
	return m.changed()
}

// changed requests a reading after what is wanted has changed.
func (m *topModel) changed() tea.Cmd {
	if m.paused {
		m.notice = "paused: p shows what was requested"
		m.want.turn++
		return nil
	}
	return m.askNow(false)
}
