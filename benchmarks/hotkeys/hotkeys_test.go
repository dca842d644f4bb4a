package hotkeys

import (
	"flag"
	"runtime"
	"testing"
)

var numbers = flag.String("numbers", "10000,1000000", "how many keys there are")

func TestRows(t *testing.T) { Test(t, Rows()) }

func BenchmarkHotKeys(b *testing.B) { Bench(b, Rows(), *numbers, runtime.GOMAXPROCS(0)) }
