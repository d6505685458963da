package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// row is one bar and what was measured for it.
type row struct {
	section, what, floor, product, measured, bar string
	pass                                         bool
}

// report collects what is measured and says it as it comes.
type report struct {
	rows    []row
	notes   []string
	started time.Time
	load    string
	quick   bool
}

func (r *report) add(section, what, floor, product, measured, bar string, pass bool) {
	r.rows = append(r.rows, row{section, what, floor, product, measured, bar, pass})
	fmt.Printf("%-5s %-52s floor %-14s product %-16s %-16s bar %s\n", verdict(pass), what, floor, product, measured, bar)
}

func (r *report) note(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	r.notes = append(r.notes, text)
	fmt.Println("      " + text)
}

// ratioAtMost adds a comparison of times, in which less is better.
func (r *report) ratioAtMost(section, what string, floor, product []time.Duration, bar float64) {
	f, p := median(floor), median(product)
	ratio := float64(p) / float64(f)
	r.add(section, what, spread(floor), spread(product), fmt.Sprintf("%.2f ×", ratio), fmt.Sprintf("≤ %.2f ×", bar), ratio <= bar)
}

func verdict(pass bool) string {
	if pass {
		return "pass"
	}
	return "FAIL"
}

func median[T interface{ ~int64 | ~float64 }](values []T) T {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// spread is the median with the smallest and the largest, in milliseconds.
func spread(values []time.Duration) string {
	if len(values) == 1 {
		return millis(values[0])
	}
	return fmt.Sprintf("%s (%.0f–%.0f)", millis(median(values)), float64(slices.Min(values).Microseconds())/1000, float64(slices.Max(values).Microseconds())/1000)
}

func rate(values []float64) string {
	return fmt.Sprintf("%.0f MB/s (%.0f–%.0f)", median(values)/1e6, slices.Min(values)/1e6, slices.Max(values)/1e6)
}

func (r *report) write(path, root string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r.print(file, root)
	return nil
}

func (r *report) print(out io.Writer, root string) {
	fmt.Fprintf(out, "# Results\n\nMade by `./space bench`; do not edit.")
	if r.quick {
		fmt.Fprint(out, " A quick run: few rounds, small amounts.")
	}
	fmt.Fprintf(out, " Product and floor take turns in one run; times are medians (smallest–largest).\nWhat is measured and what the floors are: bench/README.md.\n\n")
	fmt.Fprintf(out, "| condition | |\n|---|---|\n")
	for _, c := range r.conditions(root) {
		fmt.Fprintf(out, "| %s | %s |\n", c[0], c[1])
	}
	fmt.Fprintf(out, "\n| | what | floor | product | measured | bar |\n|---|---|---|---|---|---|\n")
	for _, w := range r.rows {
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", verdict(w.pass), w.what, w.floor, w.product, w.measured, w.bar)
	}
	if len(r.notes) > 0 {
		fmt.Fprintf(out, "\n")
		for _, note := range r.notes {
			fmt.Fprintf(out, "- %s\n", note)
		}
	}
}

func (r *report) conditions(root string) [][2]string {
	run := func(name string, args ...string) string {
		out, _ := exec.Command(name, args...).Output()
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return first
	}
	cpu := "unknown"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.Trim(name, " \t:\n")
				break
			}
		}
	}
	var info syscall.Sysinfo_t
	_ = syscall.Sysinfo(&info)
	commit := run("git", "-C", root, "rev-parse", "--short", "HEAD")
	if run("git", "-C", root, "status", "--porcelain", "--", ":!bench/RESULTS.md", "src", "agent", "bench", "proto", "pom.xml", "space", "launcher") != "" {
		commit += ", with changes"
	}
	return [][2]string{
		{"date", r.started.UTC().Format("2006-01-02 15:04 UTC")},
		{"commit", commit},
		{"CPU", fmt.Sprintf("%s, %d cores", cpu, runtime.NumCPU())},
		{"memory", fmt.Sprintf("%d GiB", uint64(info.Totalram)*uint64(info.Unit)>>30)},
		{"kernel", run("uname", "-sr")},
		{"QEMU", run("qemu-system-x86_64", "--version")},
		{"load average at the start, at the end", r.load + ", " + loadAverage()},
		{"run time", time.Since(r.started).Round(time.Second).String()},
	}
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
