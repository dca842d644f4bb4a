package spelling

import "fmt"

// UnknownRule returns the error message for a name that none of rules has, and the rule that was
// probably meant, or "". The message has that rule, or else at most three of rules.
func UnknownRule(name string, rules []string) (message, nearest string) {
	const shown = 3
	message = fmt.Sprintf("unknown rule %q: ", name)
	switch nearest = Nearest(name, rules, 2); {
	case nearest != "":
		message += fmt.Sprintf("did you mean %q?", nearest)
	case len(rules) == 0:
		message += "there are no rules"
	case len(rules) > shown:
		message += fmt.Sprintf("must be one of %q and %d more", rules[:shown], len(rules)-shown)
	default:
		message += fmt.Sprintf("must be one of %q", rules)
	}
	return message, nearest
}
