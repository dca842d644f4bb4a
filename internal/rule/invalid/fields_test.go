package invalid_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/rule/invalid"
)

func TestFields(t *testing.T) {
	var fields invalid.Fields
	fields.Check(false, "name", invalid.Missing, "must be given")
	fields.Check(true, "key", invalid.Missing, "must be given")
	fields.Check(false, "ban.max", 5, "must be at least %d", 10)
	fields.Check(false, "ban.for", time.Hour, "must be %v, %v, %v or %v", 10*time.Minute, 61*time.Minute, 60*24*time.Hour, 10500*time.Millisecond)
	fields.Check(false, "adapt", nil, "must be left out")
	fields.CheckNil(errors.New("path: empty: must be given"), "when")
	fields.CheckNil(nil, "when")
	const want = `rule 3 ("login"): name: missing: must be given
rule 3 ("login"): ban.max: 5: must be at least 10
rule 3 ("login"): ban.for: 1h: must be 10m, 1h1m, 1440h or 10.5s
rule 3 ("login"): adapt: must be left out
rule 3 ("login"): when: path: empty: must be given`
	if got := fields.Of(2, "login").Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
