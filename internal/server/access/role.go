package access

import "fmt"

// A Role is what a client may do. Each role includes those before it.
type Role uint8

// The roles, from least to most.
const (
	None  Role = iota // an unknown client
	Read              // read counts, rules, bans and statistics
	Check             // ask for decisions and add events, as a service does
	Admin             // ban, unban, reset, reload
)

var roleNames = [...]string{"none", "read", "check", "admin"}

// String returns the name of r, as in token files.
func (r Role) String() string {
	if int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", r)
	}
	return roleNames[r]
}

// May reports whether r includes the role need. An invalid role includes nothing.
func (r Role) May(need Role) bool { return need <= r && r <= Admin }

// RoleNamed returns the role of that name: read, check or admin.
func RoleNamed(name string) (Role, error) {
	for r := Read; r <= Admin; r++ {
		if name == roleNames[r] {
			return r, nil
		}
	}
	const must = "must be read, check or admin"
	if len(name) > maxShown {
		return None, fmt.Errorf("role: a word of %d characters: %s", len(name), must)
	}
	return None, fmt.Errorf("role: %q: %s", name, must)
}

// maxShown is the longest word that an error shows: a longer one in the place of a role
// may be a token.
const maxShown = 12
