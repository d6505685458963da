package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func measureStart(r *run) error {
	times := 7
	if r.quick {
		times = 3
	}
	var ready []time.Duration
	rss := 0.0
	for i := range times {
		d, err := startDaemon(r.space, r.dataDir)
		if err != nil {
			return err
		}
		ready = append(ready, d.ready)
		if i == times-1 {
			if err := measureCommands(r, d, times); err != nil {
				d.stop()
				return err
			}
			time.Sleep(3 * time.Second)
			rss = d.rss()
		}
		d.stop()
	}
	r.add("start", "./space serve until ready", "", spread(ready), "", "< 2 s", median(ready) < 2*time.Second)
	r.add("start", "resident memory of the idle service", "", fmt.Sprintf("%.0f MiB", rss), "", "< 200 MiB", rss < 200)
	return nil
}

func measureCommands(r *run, d *daemon, times int) error {
	for _, m := range []struct {
		args string
		bar  time.Duration
	}{{"--version", 300 * time.Millisecond}, {"sandbox ls", 500 * time.Millisecond}} {
		var took []time.Duration
		for range times {
			command := exec.Command(r.space, strings.Fields(m.args)...)
			command.Env = append(os.Environ(), "SPACE_DATA_DIR="+d.dir)
			t, err := timed(func() error {
				out, err := command.CombinedOutput()
				if err != nil {
					return fmt.Errorf("%s: %w: %s", m.args, err, out)
				}
				return nil
			})
			if err != nil {
				return err
			}
			took = append(took, t)
		}
		r.add("start", "./space "+m.args, "", spread(took), "", "< "+millis(m.bar), median(took) < m.bar)
	}
	return nil
}

// measureFiles sends a large file into a guest and fetches it again.
func measureFiles(r *run) error {
	d, err := startDaemon(r.space, r.dataDir)
	if err != nil {
		return err
	}
	defer d.stop()
	sandbox, _, err := d.createToFirst()
	if err != nil {
		return err
	}
	defer func() { _ = d.remove(sandbox) }()
	size := int64(2 << 30)
	if r.quick {
		size = 128 << 20
	}
	// A small one first: what is made once does not count.
	if _, _, err := d.there(sandbox, 4<<20); err != nil {
		return err
	}
	before, err := d.heap()
	if err != nil {
		return err
	}
	rss := d.rss()
	stop, most := make(chan struct{}), make(chan float64)
	go func() {
		top := 0.0
		for {
			select {
			case <-stop:
				most <- top
				return
			case <-time.After(2 * time.Second):
				if now, err := d.heap(); err == nil {
					top = max(top, now)
				}
			}
		}
	}()
	up, down, err := d.there(sandbox, size)
	close(stop)
	grown := <-most - before
	if err != nil {
		return err
	}
	mib := strconv.FormatInt(size>>20, 10)
	r.add("files", mib+" MiB up and down: hash", "", "", "equal", "equal", true)
	r.add("files", mib+" MiB up and down: growth of live heap", "", fmt.Sprintf("%.1f MiB", grown), fmt.Sprintf("%+.0f MiB resident", d.rss()-rss), "< 64 MiB", grown < 64)
	r.note("file transfer: up %.0f MB/s, down %.0f MB/s", float64(size)/1e6/up.Seconds(), float64(size)/1e6/down.Seconds())
	return nil
}

type hashedReader struct {
	from io.Reader
	sum  hash.Hash
}

func (h hashedReader) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	h.sum.Write(p[:n])
	return n, err
}

// there sends bytes to a file of the guest and back, and compares them.
func (c *client) there(sandbox string, size int64) (up, down time.Duration, err error) {
	sent := hashedReader{io.LimitReader(rand.NewChaCha8([32]byte{1}), size), sha256.New()}
	began := time.Now()
	response, err := c.send("PUT", c.file(sandbox, "/home/user/big"), c.key, sent)
	if err != nil {
		return 0, 0, err
	}
	response.Body.Close()
	up = time.Since(began)
	began = time.Now()
	if response, err = c.send("GET", c.file(sandbox, "/home/user/big"), c.key, nil); err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	got := sha256.New()
	n, err := io.Copy(got, response.Body)
	if err == nil && (n != size || string(got.Sum(nil)) != string(sent.sum.Sum(nil))) {
		err = fmt.Errorf("%d bytes came back of %d, or others", n, size)
	}
	return up, time.Since(began), err
}

// measureSimulated measures the control plane and the event streams without VMs.
func measureSimulated(r *run) error {
	dir := filepath.Join(r.scratch, "simulated")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	d, err := startDaemon(r.space, dir, "vmm=simulated", "limits.memory_mib=100000000", "limits.vms_max=100000")
	if err != nil {
		return err
	}
	defer d.stop()
	if err := measureCreates(r, d); err != nil {
		return err
	}
	seconds := 15
	if r.quick {
		seconds = 5
	}
	return errors.Join(measureStreams(r, d, 500, seconds), measureStreams(r, d, 2000, seconds))
}

func measureCreates(r *run, d *daemon) error {
	const clients = 32
	n := 3000
	if r.quick {
		n = 1000
	}
	ids := make([]string, n)
	var next atomic.Int64
	many := func(work func(i int) error) (time.Duration, error) {
		next.Store(0)
		return together(clients, func(int) error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := work(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var best float64
	// The first times warm up.
	for range 3 {
		took, err := many(func(i int) (err error) { ids[i], err = d.create(); return err })
		if err != nil {
			return err
		}
		best = max(best, float64(n)/took.Seconds())
		if _, err := many(func(i int) error { return d.remove(ids[i]) }); err != nil {
			return err
		}
	}
	r.add("simulated", "durable creates, accepted and done", "", fmt.Sprintf("%.0f /s", best), "", "≥ 500 /s", best >= 500)
	return nil
}

// measureStreams attaches to many sessions that write a line each second.
func measureStreams(r *run, d *daemon, streams, seconds int) error {
	const perSandbox = 10
	script := strings.TrimSuffix(strings.Repeat("echo tick; sleep 1; ", seconds), "sleep 1; ") + "sleep 600"
	sandboxes := make([]string, streams/perSandbox)
	for i := range sandboxes {
		var err error
		if sandboxes[i], err = d.create(); err != nil {
			return err
		}
	}
	defer func() { _ = d.removeAll(sandboxes) }()
	heap, err := d.heap()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds+60)*time.Second)
	defer cancel()
	var lock sync.Mutex
	var worst time.Duration
	whole, attached := 0, atomic.Int64{}
	top := atomic.Int64{}
	_, err = together(streams+1, func(i int) error {
		if i == streams { // in the midst of it
			time.Sleep(time.Duration(seconds) * time.Second)
			now, err := d.heap()
			top.Store(int64(now * 1024))
			return err
		}
		var s session
		body := map[string]any{"argv": []string{"sh", "-c", script}}
		if err := d.call("POST", "/v1/sandboxes/"+sandboxes[i/perSandbox]+"/sessions", body, &s); err != nil {
			return err
		}
		var firstAt time.Time
		late, n := time.Duration(0), 0
		err := d.attach(ctx, s, "", func(e event) bool {
			if e.name != "stdout" {
				return true
			}
			if n == 0 {
				firstAt = time.Now()
				attached.Add(1)
			}
			late = max(late, time.Since(firstAt)-time.Duration(n)*time.Second)
			n++
			return n < seconds
		})
		lock.Lock()
		defer lock.Unlock()
		worst = max(worst, late)
		if n == seconds {
			whole++
		}
		return err
	})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d attached streams, an event each second", streams)
	r.add("simulated", what, "", fmt.Sprintf("%d whole", whole), "latest by "+millis(worst), "none missed, ≤ 1 s late", whole == streams && worst <= time.Second)
	if streams == 500 {
		grown := float64(top.Load())/1024 - heap
		r.add("simulated", what+": growth of live heap", "", fmt.Sprintf("%.1f MiB", grown), fmt.Sprintf("%.2f MiB each", grown/float64(streams)), "flat (≤ 32 MiB)", grown <= 32)
	}
	return nil
}
