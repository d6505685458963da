// The bars of the design, measured: the product beside its floor, which is a bare program that does the
// same to QEMU and the guest's agent. They take turns in one run, because the machine is never the same
// twice. See README.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// run is what all sections share.
type run struct {
	*report
	space   string // the launcher
	scratch string
	dataDir string // prepared: kernel, initramfs, base template
	rounds  int
}

type section struct {
	name    string
	measure func(*run) error
}

var sections = []section{
	{"start", measureStart},
	{"vm", measureVM},
	{"warm", measureWarm},
	{"many", measureMany},
	{"files", measureFiles},
	{"e2b", measureE2B},
	{"firecracker", measureFirecracker},
	{"simulated", measureSimulated},
}

func main() {
	names := make([]string, len(sections))
	for i, s := range sections {
		names[i] = s.name
	}
	only := flag.String("only", "", "`sections`, comma-separated, of "+strings.Join(names, ", ")+"; all if not given")
	quick := flag.Bool("quick", false, "fewer rounds and smaller amounts")
	root := flag.String("root", ".", "the checkout")
	data := flag.String("data", "", "a prepared data `directory`, which nothing else uses")
	out := flag.String("out", "", "the `file` for the results; bench/RESULTS.md if not given, none for a part of the sections")
	rounds := flag.Int("rounds", 0, "turns of each pair")
	flag.Parse()
	chosen := names
	if *only != "" {
		chosen = strings.Split(*only, ",")
		for _, name := range chosen {
			if !slices.Contains(names, name) {
				fmt.Fprintln(os.Stderr, "bench: no section", name)
				os.Exit(2)
			}
		}
	}
	if *out == "" && *only == "" {
		*out = filepath.Join(*root, "bench", "RESULTS.md")
	}
	failed, err := measure(*root, *data, *out, chosen, *quick, *rounds)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if failed {
		os.Exit(3)
	}
}

func measure(root, data, out string, chosen []string, quick bool, rounds int) (bool, error) {
	scratch, err := os.MkdirTemp("", "bench")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	// VM processes without privileges pass through it.
	if err := os.Chmod(scratch, 0o711); err != nil {
		return false, err
	}
	r := &run{
		report: &report{started: time.Now(), load: loadAverage(), quick: quick},
		space:  filepath.Join(root, "space"), scratch: scratch, dataDir: data, rounds: rounds,
	}
	if r.rounds == 0 {
		r.rounds = 15
		if quick {
			r.rounds = 5
		}
	}
	failed := false
	for _, s := range sections {
		if !slices.Contains(chosen, s.name) {
			continue
		}
		fmt.Printf("-- %s (load %s)\n", s.name, loadAverage())
		if err := s.measure(r); err != nil {
			r.add(s.name, s.name+": not finished", "", "", "error", "", false)
			r.note("%s: %v", s.name, err)
		}
	}
	for _, w := range r.rows {
		failed = failed || !w.pass
	}
	if out == "" {
		return failed, nil
	}
	return failed, r.write(out, root)
}
