package accesslogtest

import "time"

// A stamp formats times; consecutive lines of one second format it once.
type stamp struct {
	start  time.Time
	layout string
	sec    int64
	text   []byte
}

func (s *stamp) at(ms int64) []byte {
	if sec := ms / 1000; sec != s.sec || s.text == nil {
		s.sec = sec
		s.text = s.start.Add(time.Duration(sec)*time.Second).AppendFormat(s.text[:0], s.layout)
	}
	return s.text
}
