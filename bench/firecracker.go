package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// measureFirecracker looks at what the Firecracker driver itself takes of a restore: all but the time from
// the start of the process to its socket, and the answers to its calls. The stand-in serves as well for that.
func measureFirecracker(r *run) error {
	fake, err := filepath.Abs(filepath.Join(filepath.Dir(os.Args[0]), "fake", "firecracker"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(fake); err != nil {
		return err
	}
	d, err := startDaemon(r.space, r.dataDir, "vmm=firecracker", "firecracker.jailer=none",
		"firecracker.call_seconds=60", "firecracker.binary="+fake)
	if err != nil {
		return err
	}
	defer d.stop()
	// The first makes the base snapshot; the service's code is warm after some more.
	for range 5 {
		if err := d.createAndRemove(); err != nil {
			return err
		}
	}
	before, err := d.counters()
	if err != nil {
		return err
	}
	for range r.rounds {
		if err := d.createAndRemove(); err != nil {
			return err
		}
	}
	after, err := d.counters()
	if err != nil {
		return err
	}
	restores := after["restores"] - before["restores"]
	if restores < 1 {
		return errors.New("nothing was restored")
	}
	whole := time.Duration((after["restore_micros"]-before["restore_micros"])/restores) * time.Microsecond
	waited := time.Duration((after["restore_waited_micros"]-before["restore_waited_micros"])/restores) * time.Microsecond
	own := whole - waited
	r.add("firecracker", fmt.Sprintf("the driver's own part of a restore (mean of %.0f)", restores), millis(waited)+" waited",
		millis(own), "", "≤ 15 ms", own <= 15*time.Millisecond)
	return nil
}

func (d *daemon) createAndRemove() error {
	sandbox, err := d.create()
	if err != nil {
		return err
	}
	return d.remove(sandbox)
}

// counters reads what the VM monitor counts out of the service's metrics.
func (d *daemon) counters() (map[string]float64, error) {
	response, err := d.send(http.MethodGet, d.control+"/metrics", d.key, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	found := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		rest, ours := strings.CutPrefix(lines.Text(), `space_vmm_total{what="`)
		name, number, is := strings.Cut(rest, `"} `)
		if !ours || !is {
			continue
		}
		if found[name], err = strconv.ParseFloat(number, 64); err != nil {
			return nil, err
		}
	}
	return found, lines.Err()
}
