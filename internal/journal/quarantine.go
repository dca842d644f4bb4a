package journal

import (
	"slices"
	"strings"
)

// keptBad is how many damaged files of each kind are kept.
const keptBad = 3

// forgetBad removes damaged files but the newest few of each kind, so that a disk
// that fails again and again is not filled with what nothing reads. What cannot be
// removed is tried again after the next snapshot.
func (d *Dir) forgetBad() {
	names, err := d.fs.list()
	if err != nil {
		return
	}
	for _, stem := range []string{snapshotStem, journalStem} {
		var numbers []uint64
		for _, name := range names {
			if plain, ok := strings.CutSuffix(name, badSuffix); ok {
				if n, ok := numberOf(plain, stem); ok {
					numbers = append(numbers, n)
				}
			}
		}
		slices.Sort(numbers)
		for _, n := range numbers[:max(0, len(numbers)-keptBad)] {
			name := snapshotName(n)
			if stem == journalStem {
				name = journalName(n)
			}
			_ = d.fs.remove(name + badSuffix)
		}
	}
}
