package rulevalue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/rule/spelling"
)

const maxName = 64

// NameBytes describes the bytes of names.
const NameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// Name parses the name of a rule, counter or field. Names are written into lines
// of a protocol and into metrics as they are.
func Name(s string) (string, error) {
	if s == "" || len(s) > maxName || strings.Trim(s, NameBytes) != "" {
		return "", fmt.Errorf("must be 1 to %d letters, digits, '-', '_' and '.'", maxName)
	}
	return s, nil
}

// CheckField returns an error unless name is a field that rules can use, where those are declared.
func CheckField(name string, declared []string) error {
	if err := CheckFieldName(name); err != nil || !intake.NeedsSource(name) || slices.Contains(declared, name) {
		return err
	}
	if near := spelling.Nearest(name, append(eventfield.WellKnown(), declared...), 1); near != "" {
		return fmt.Errorf("field %q: unknown: did you mean %s?", name, near)
	}
	return fmt.Errorf(`field %q: unknown: must be declared under fields with the place that has it, as in "%s: {header: NAME}", or cookie, bearer or query, or "%s: {}" if CHECK, a program or a log gives it`, name, name, name)
}

// CheckFieldName returns an error unless name can be the name of a field.
func CheckFieldName(name string) error {
	if _, err := Name(name); err != nil {
		return fmt.Errorf("field %q: %w", Clip(name), err)
	}
	lower := strings.ToLower(name)
	if slices.Contains([]string{"cost", "reserve", "outcome", "at"}, lower) {
		return fmt.Errorf("field %q: must be another name, as commands use this one", name)
	}
	if lower == "not" {
		return fmt.Errorf("%q: must be directly under when, with the conditions that must not hold", name)
	}
	if _, known := eventfield.Named(lower); known && lower != name {
		return fmt.Errorf("field %q: did you mean %s?", name, lower)
	}
	return nil
}

// Join joins words as a list in a sentence: a, b and c.
func Join(words []string, last string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " " + last + " " + words[n-1]
	}
}
