package storetest

import (
	"slices"

	"github.com/lately-go/lately/ratelimit"
)

// answerCases are about rules that count answers.
var answerCases = []Case{
	{
		"Answers", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			rules := c.randomRules(a, 4)
			if last := &rules[len(rules)-1]; last.Ban == nil { // then times are near the present, as those of bans by hand
				last.Ban = c.randomBan()
			}
			return rules
		}, (*walk).take, (*walk).request, (*walk).request, (*walk).request, (*walk).answer, (*walk).answer, (*walk).reset, (*walk).ban, (*walk).unban),
		"A rule that counts answers refuses a request if a limit is full or a ban holds, and counts of it only the refusal, for its own ban. The answer is counted whatever its limits allow, and begins bans, under each rule as if it were alone.",
	},
}

// refusedCases are about events that a rule without their key refuses.
var refusedCases = []Case{
	{
		"Refused", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			return c.randomRules(a, 4)
		}, (*walk).take, (*walk).refused, (*walk).refused, (*walk).reset, (*walk).ban, (*walk).unban),
		"An event that was refused before is charged to no limit but those that count refused events. Bans count it, and one that holds is told.",
	},
}

// refused judges an event that another rule has refused, or peeks.
func (w *walk) refused() {
	w.session.judge(&request{Cost: w.cost(), Peek: w.rnd.IntN(4) == 0, Refused: true, Subjects: w.subjects()})
}

// ofAnswers reports whether a rule of a walk counts answers: every second one.
func ofAnswers(rule int) bool { return rule%2 == 0 }

// request judges a request without its answer, or peeks.
func (w *walk) request() {
	subjects := w.subjects()
	for i := range subjects {
		subjects[i].Look = ofAnswers(subjects[i].Outcome.Rule)
	}
	if look := subjects[0].Look; w.config.Compensates && !w.takenBackExactly() { // it would be another subject
		subjects = slices.DeleteFunc(subjects, func(s subject) bool { return s.Look != look })
	}
	w.session.judge(&request{Cost: w.cost(), Peek: w.rnd.IntN(4) == 0, Subjects: subjects})
}

// answer judges the answer to a request, of which only some rules judged the request.
func (w *walk) answer() {
	subjects := slices.DeleteFunc(w.subjects(), func(s subject) bool { return !ofAnswers(s.Outcome.Rule) })
	if len(subjects) > 0 {
		w.session.judge(&request{Cost: 1 + w.rnd.Uint64N(2), Answer: true, Subjects: subjects})
	}
}
