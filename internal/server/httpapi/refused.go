package httpapi

import (
	"time"

	"github.com/lately-go/lately/api"
)

// listRefused answers with the keys that were refused most.
func listRefused(c *call) error {
	_, n, d, err := c.listQuery(time.Minute)
	if err != nil {
		return err
	}
	keys, err := c.s.Engine.Refused(n, d)
	if err != nil {
		return err
	}
	return c.answer(api.RefusedList{Refused: keys})
}
