package replay

import (
	"io"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// change returns what the new rules change, in words.
func change(b *api.BanDifference) string {
	switch {
	case b.OldSeconds == 0:
		return "newly banned"
	case b.NewSeconds == 0:
		return "no longer banned"
	case b.NewSeconds > b.OldSeconds:
		return "banned longer"
	}
	return "banned shorter"
}

// WriteText writes the difference for people. Keys are escaped as in [Report.WriteText].
func (d *Difference) WriteText(out io.Writer, style TextStyle) error {
	w := newTextWriter(out, style)
	of := plural(len(d.Files), "file", "files")
	if d.Since != nil {
		of = visible(d.Files[0])
	}
	w.f("%s events of %s", count(d.Events), of)
	if d.First != nil {
		w.f(", from %s to %s %s", w.stamp(d.First), w.stamp(d.Last), w.zone)
	}
	w.f("\n")
	w.assumed(&d.AssumedTimes)
	w.cut(d.Cut)
	w.side("old", &d.Old)
	w.side("new", &d.New)
	w.f("newly refused: %s; newly allowed: %s\n", plural(int(d.NewlyRefused), "event", "events"), plural(int(d.NewlyAllowed), "event", "events"))
	if d.Empty() {
		w.f("no difference\n")
	}
	w.keyDifferences("Decided differently, by "+d.Field, d.Field, d.Keys, d.KeysLeftOut)
	w.banDifferences("Bans of another length", d.Bans, d.BansLeftOut)
	w.keyDifferences("Protected keys that are newly refused", d.Field, d.Hurt, 0)
	w.banDifferences("Protected keys that are banned for longer", d.HurtBans, 0)
	if d.Since != nil {
		w.heading("Not included")
		w.f("  Events before %s %s.\n", w.stamp(d.Since), w.zone)
	}
	for _, sentence := range d.Unknown {
		w.f("  %s\n", visible(sentence))
	}
	return w.Flush()
}

func (w *textWriter) side(name string, s *api.DiffSide) {
	w.f("%s: %s refuses %s (%s), and starts %s\n", name, visible(s.Rules), count(s.Refused),
		percent(s.Refused, s.Allowed+s.Refused), plural(int(s.Bans), "ban", "bans"))
}

func (w *textWriter) keyDifferences(heading, field string, keys []api.KeyDifference, leftOut int64) {
	if len(keys) == 0 {
		return
	}
	w.heading("%s", heading)
	rows := [][]string{{field, "events", "old refused", "new refused", "newly refused", "newly allowed"}}
	for _, k := range keys {
		rows = append(rows, []string{keyText(k.Key), count(k.Events), count(k.OldRefused), count(k.NewRefused), count(k.NewlyRefused), count(k.NewlyAllowed)})
	}
	w.table(rows)
	w.leftOut(leftOut)
}

func (w *textWriter) banDifferences(heading string, bans []api.BanDifference, leftOut int64) {
	if len(bans) == 0 {
		return
	}
	w.heading("%s", heading)
	rows := [][]string{{"key", "by", "old", "new", "change"}}
	for _, b := range bans {
		rows = append(rows, []string{keyText(b.Key), strings.Join(b.Fields, ", "), rulevalue.FormatDuration(seconds(b.OldSeconds)), rulevalue.FormatDuration(seconds(b.NewSeconds)), change(&b)})
	}
	w.table(rows)
	w.leftOut(leftOut)
}

func (w *textWriter) leftOut(n int64) {
	if n > 0 {
		w.f("  and %s more; --top shows more\n", count(n))
	}
}
