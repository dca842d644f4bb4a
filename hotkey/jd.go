package hotkey

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/window"
)

// JD returns the window that JD hotkey's workers use for a rule of that
// duration: 5 slots up to 5 s and 10 slots above. The duration must be whole
// seconds from 1 s to 600 s. Any other duration is an error; JD hotkey reduces
// longer ones to 600 s silently.
//
// Their other form of rules, with a slice and a number of slices, is
// window.Window{Span: slices * slice, Slot: slice}.
//
// A [Rule] needs no such window, because a Detector counts exactly. Use JD to
// compare with JD hotkey, with a [window.Counter].
func JD(duration time.Duration) (window.Window, error) {
	if duration < time.Second || duration > 600*time.Second || duration%time.Second != 0 {
		return window.Window{}, fmt.Errorf("hotkey: JD duration: %v: must be whole seconds from 1s to 600s", duration)
	}
	if duration <= 5*time.Second {
		return window.Window{Span: duration, Slot: duration / 5}, nil
	}
	return window.Window{Span: duration, Slot: duration / 10}, nil
}
