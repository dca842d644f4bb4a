// Command chart draws the charts of the README from the raw results, as SVG. It
// is started by the command run, or by itself:
//
//	go run ./chart -results results
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/lately-go/lately/benchmarks/figures"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("results", "results", "folder with windows.txt, keyed.txt and limits.txt, where the charts go")
	flag.Parse()
	if err := draw(*dir); err != nil {
		log.Fatal("chart: ", err)
	}
}

// draw draws the charts of what has been measured.
func draw(dir string) error {
	for _, of := range []struct {
		raw    string
		charts func(*figures.Set, int) map[string]string
	}{{"windows.txt", windowCharts}, {"keyed.txt", keyedCharts}, {"limits.txt", limitCharts}} {
		set, err := read(filepath.Join(dir, of.raw))
		if errors.Is(err, fs.ErrNotExist) {
			log.Printf("there is no %s: its charts are not drawn", of.raw)
			continue
		} else if err != nil {
			return err
		}
		cores := 2
		if text := set.Config("cores"); text != "" {
			if _, err := fmt.Sscan(text, &cores); err != nil {
				return fmt.Errorf("%s: cores: %w", of.raw, err)
			}
		}
		for name, svg := range of.charts(set, cores) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(svg), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func read(name string) (*figures.Set, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	set := new(figures.Set)
	if err := set.Read(f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return set, nil
}
