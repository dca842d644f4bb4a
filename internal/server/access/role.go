package access

import (
	"fmt"
	"strings"
)

// A Role is what somebody may do. Each may do what those before it may. The
// zero Role may do nothing that needs one.
type Role uint8

// The roles, from least to most.
const (
	None  Role = iota // nobody that we know
	Read              // look: counts, rules, bans, statistics
	Check             // ask for decisions and add events, as a service does
	Admin             // ban, unban, reset, reload
)

var roleNames = [...]string{"none", "read", "check", "admin"}

// String returns the name of r as files have it.
func (r Role) String() string {
	if int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", r)
	}
	return roleNames[r]
}

// May reports whether r is enough where need is needed. A value that is no role
// may do nothing, and nobody may do what needs one.
func (r Role) May(need Role) bool { return need <= r && r <= Admin }

// RoleNamed returns the role of that name: read, check or admin. There is no
// asking for none.
func RoleNamed(name string) (Role, error) {
	for r := Read; r <= Admin; r++ {
		if name == roleNames[r] {
			return r, nil
		}
	}
	if len(name) > maxShown {
		return None, fmt.Errorf("a word of %d characters is no role; allowed are %s", len(name), roleList())
	}
	return None, fmt.Errorf("%q is no role; allowed are %s", name, roleList())
}

// maxShown is the longest word that an error shows. A longer one in the place of
// a role may be a token.
const maxShown = 12

func roleList() string { return strings.Join(roleNames[Read:], ", ") }
