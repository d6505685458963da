package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// daemon is a service of the product's own, on ports that are free, over a data directory of its own.
type daemon struct {
	*client
	process *exec.Cmd
	dir     string
	e2b     string        // where E2B's SDKs are served
	ready   time.Duration // from the start of ./space serve to a ready answer
}

// startDaemon starts ./space serve and returns when it is ready.
func startDaemon(space, dir string, settings ...string) (*daemon, error) {
	log, err := os.Create(filepath.Join(dir, "serve.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	info := filepath.Join(dir, "daemon.json")
	_ = os.Remove(info)
	args := []string{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--data-listen", "127.0.0.1:0",
		"--set", "e2b.listen=127.0.0.1:0"}
	for _, setting := range settings {
		args = append(args, "--set", setting)
	}
	process := exec.Command(space, args...)
	process.Stdout, process.Stderr = log, log
	process.Env = append(os.Environ(), "SPACE_NO_BUILD=1")
	began := time.Now()
	if err := process.Start(); err != nil {
		return nil, err
	}
	d := &daemon{process: process, dir: dir}
	if err := d.awaitReady(info); err != nil {
		d.stop()
		return nil, err
	}
	d.ready = time.Since(began)
	return d, nil
}

func (d *daemon) awaitReady(info string) error {
	until := time.Now().Add(startLimit)
	for time.Now().Before(until) {
		text, err := os.ReadFile(info)
		var where struct {
			Control string `json:"control_url"`
			Data    string `json:"data_url"`
			E2B     string `json:"e2b_url"`
			Pid     int
		}
		if err == nil && json.Unmarshal(text, &where) == nil && where.Pid == d.process.Process.Pid {
			key, err := os.ReadFile(filepath.Join(d.dir, "api-key"))
			if err != nil {
				return err
			}
			d.client = newClient(where.Control, where.Data, strings.TrimSpace(string(key)))
			d.e2b = where.E2B
			response, err := http.Get(where.Control + "/readyz")
			if err == nil {
				response.Body.Close()
				if response.StatusCode == http.StatusOK {
					return nil
				}
			}
		}
		if d.ended() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(d.dir, "serve.log"))
	return fmt.Errorf("the service is not ready; it says: %s", log)
}

func (d *daemon) ended() bool {
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(d.process.Process.Pid, &status, syscall.WNOHANG, nil)
	return pid != 0 || err != nil
}

// stop ends the service, then whatever VM of its data directory is left.
func (d *daemon) stop() {
	_ = d.process.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = d.process.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		_ = d.process.Process.Kill()
		<-done
	}
	killVMs(d.dir)
}

// killVMs ends processes that were started with a path below a directory's vms.
func killVMs(dir string) {
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, entry := range entries {
		text, err := os.ReadFile(entry)
		if err == nil && strings.Contains(string(text), filepath.Join(dir, "vms")+"/") {
			if pid, err := strconv.Atoi(strings.Split(entry, "/")[2]); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// rss gives the resident memory in MiB.
func (d *daemon) rss() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.process.Process.Pid))
	match := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if match == nil {
		return 0
	}
	kib, _ := strconv.ParseFloat(string(match[1]), 64)
	return kib / 1024
}

var generation = regexp.MustCompile(`(?m)^\s*(?:DefNew|Tenured|.* generation)\s+total \d+K, used (\d+)K`)

// heap gives the MiB that live objects take: what is left after a full collection.
func (d *daemon) heap() (float64, error) {
	pid := strconv.Itoa(d.process.Process.Pid)
	jcmd := filepath.Join(os.Getenv("JAVA_HOME"), "bin", "jcmd")
	if out, err := exec.Command(jcmd, pid, "GC.run").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("jcmd: %w: %s", err, out)
	}
	out, err := exec.Command(jcmd, pid, "GC.heap_info").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("jcmd: %w: %s", err, out)
	}
	matches := generation.FindAllSubmatch(out, -1)
	if len(matches) == 0 {
		return 0, errors.New("GC.heap_info is not understood: " + string(out))
	}
	total := 0.0
	for _, match := range matches {
		kib, _ := strconv.ParseFloat(string(match[1]), 64)
		total += kib / 1024
	}
	return total, nil
}

// warm counts the VMs that wait in the pool.
func (d *daemon) warm() int {
	entries, _ := filepath.Glob(filepath.Join(d.dir, "vms", "*", "vm.json"))
	n := 0
	for _, entry := range entries {
		text, _ := os.ReadFile(entry)
		if strings.Contains(string(text), `"WARM"`) {
			n++
		}
	}
	return n
}
