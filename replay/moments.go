package replay

import "math"

// moments has, by key, the times of the events of the last span. Times must ascend, from
// call to call too. Many events of a key at one time take as much memory as one.
type moments struct {
	span    int64
	pages   []*[pageMoments]moment
	removed uint   // moments before pages
	added   uint   // moments, with those removed
	newest  []uint // of each key, the number of its newest moment, from 1; 0 if it had none
}

// A moment is a time at which a key has n events.
type moment struct {
	at   int64
	n    uint32
	back uint32 // how many moments earlier the one before it of the same key is; 0 if there was none
}

const pageMoments = 1 << 12

// moment returns the moment of a number that was not removed.
func (m *moments) moment(number uint) *moment {
	at := number - 1 - m.removed
	return &m.pages[at/pageMoments][at%pageMoments]
}

// add adds events with their times and keys, except those of key 0. All keys are below n. It
// returns those that have events, and the number of the first moment that is new.
func (m *moments) add(times []int64, ids []uint32, n int) (keys []uint32, first uint) {
	m.newest = grown(m.newest, n)
	first = m.added + 1
	for i, id := range ids {
		if id == 0 {
			continue
		}
		last := m.newest[id]
		if last < first {
			keys = append(keys, id)
		} else if same := m.moment(last); same.at == times[i] && same.n < math.MaxUint32 {
			same.n++
			continue
		}
		at := (m.added - m.removed) % pageMoments
		if at == 0 {
			m.pages = append(m.pages, new([pageMoments]moment))
		}
		m.added++
		added := &m.pages[len(m.pages)-1][at]
		added.at, added.n = times[i], 1
		if last > m.removed {
			added.back = uint32(m.added - last)
		}
		m.newest[id] = m.added
	}
	return keys, first
}

// of appends to dst the moments of a key, the newest first: those from number first on, and
// all that are in the span of one of these. It returns how many the former are.
func (m *moments) of(dst []moment, key uint32, first uint) (own []moment, added int) {
	own = dst
	since := int64(math.MinInt64)
	for number := m.newest[key]; number > m.removed; {
		at := m.moment(number)
		if number >= first {
			added++
			since = at.at - m.span
		} else if at.at <= since {
			break
		}
		own = append(own, *at)
		if at.back == 0 {
			break
		}
		number -= uint(at.back)
	}
	return own, added
}

// trim gives back the memory of moments that are in no span with a later event.
func (m *moments) trim(now int64) {
	for len(m.pages) > 1 && m.pages[0][pageMoments-1].at <= now-m.span {
		m.pages = m.pages[1:]
		m.removed += pageMoments
	}
}

// peak returns the most events in any (t-span, t], t being one of the first so many of own,
// whose times descend.
func peak(own []moment, first int, span int64) int64 {
	most, in, to := int64(0), int64(0), 0
	for i := range first {
		for to < len(own) && own[to].at > own[i].at-span {
			in += int64(own[to].n)
			to++
		}
		most = max(most, in)
		in -= int64(own[i].n)
	}
	return most
}
