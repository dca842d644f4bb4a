package access_test

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
)

func TestRoles(t *testing.T) {
	all := []access.Role{access.None, access.Read, access.Check, access.Admin}
	for i, r := range all {
		for k, need := range all {
			if r.May(need) != (k <= i) {
				t.Errorf("%v.May(%v) is %v", r, need, r.May(need))
			}
		}
		named, err := access.RoleNamed(r.String())
		if (err == nil) != (r != access.None) || named != r {
			t.Errorf("RoleNamed(%q) is %v, %v", r, named, err)
		}
	}
	var zero access.Role
	if zero != access.None {
		t.Errorf("the zero role is %v", zero)
	}
	// An unknown role has no rights, and is not accepted anywhere.
	odd := access.Role(9)
	if odd.May(access.None) || access.Admin.May(odd) || odd.String() != "Role(9)" {
		t.Errorf("%v is taken for a role", odd)
	}
}

func TestRoleErrorsShowNoToken(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"root", `role: "root": must be read, check or admin`},
		{"Admin", `role: "Admin": must be read, check or admin`},
		{"none", `role: "none": must be`},
		{"", `role: "": must be`},
		{secret("a"), "role: a word of 40 characters: must be"},
	} {
		if _, err := access.RoleNamed(c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// secret returns a token of 40 characters.
func secret(of string) string { return strings.Repeat("t0k3n-"+of, 40)[:40] }
