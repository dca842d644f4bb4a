package respapi

import (
	"testing"
	"testing/synctest"
	"time"
)

// A place whose holder has crashed, and so does not release it, is free again after
// the rule's span; one that is released is free at once.
func TestInFlightPlacesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, true)
		crashed, c := s.dial(), s.dial()
		crashed.want("TAKE uploads ada", `[1 2 1 0 30000 "uploads" 0]`)
		crashed.conn.Close()
		time.Sleep(10 * time.Second)
		c.want("TAKE uploads ada", `[1 2 0 0 30000 "uploads" 0]`)
		c.want("TAKE uploads ada", `[0 2 0 20000 30000 "uploads" 0]`)
		time.Sleep(20 * time.Second)
		c.want("TAKE uploads ada", `[1 2 0 0 30000 "uploads" 0]`)
		c.want("RELEASE uploads ada", "1")
		c.want("RELEASE uploads ada", "1")
		c.want("RELEASE uploads ada", "0")
		c.want("TAKE uploads ada COST 2", `[1 2 0 0 30000 "uploads" 0]`)
	})
}
