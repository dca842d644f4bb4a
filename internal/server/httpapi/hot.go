package httpapi

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/hotlist"
)

// listHot answers with the keys that are hot.
func listHot(c *call) (list api.HotList, err error) {
	list.Hot, err = c.s.Engine.Hot(c.query.Get("rule"))
	return list, err
}

// watchHot answers with the state of hot keys and its changes, as subscribe does with
// events.
func watchHot(c *call) error {
	w, err := c.s.Engine.WatchHot(c.query.Get("rule"))
	if err != nil {
		return err
	}
	defer w.Close()
	return c.stream(func(st *stream) { st.watch(w) })
}

// watch sends the updates of w, and comments by which a proxy sees that the stream lasts.
func (st *stream) watch(w *hotlist.Watcher) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for seconds := 1; ; {
		wake := w.Wait()
		for u := w.Next(); u != nil; u = w.Next() {
			for _, part := range u.Parts() {
				if st.out = appendEvent(st.out, api.KeyHot, part); !st.flush() {
					return
				}
			}
		}
		select {
		case <-st.c.r.Context().Done():
			return
		case <-st.c.s.drained.Done():
			return
		case <-wake:
		case <-second.C:
			if !st.authorized() {
				return
			}
			if seconds++; seconds%quietSeconds == 0 {
				if st.out = append(st.out, ": still here\n\n"...); !st.flush() {
					return
				}
			}
		}
	}
}

// quietSeconds is how often a stream of hot keys has a comment.
const quietSeconds = 10
