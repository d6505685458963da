package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// pair is one running VM of each side.
type pair struct {
	*daemon
	floor   *floor
	sandbox string
	guest   *guest
}

// openPair starts a service and a VM, and the floor's own VM from the same command line.
func (r *run) openPair(settings ...string) (*pair, error) {
	d, err := startDaemon(r.space, r.dataDir, settings...)
	if err != nil {
		return nil, err
	}
	p := &pair{daemon: d}
	if err := p.open(r); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pair) open(r *run) (err error) {
	// The first create may have to make the base snapshot, and nothing is warmed up yet.
	if p.sandbox, _, err = p.createToFirst(); err != nil {
		return err
	}
	work, err := os.MkdirTemp(r.scratch, "floor")
	if err != nil {
		return err
	}
	if err := os.Chmod(work, 0o711); err != nil {
		return err
	}
	p.floor = &floor{work: work}
	if p.floor.machine, err = readMachine(r.dataDir, p.sandbox); err != nil {
		return err
	}
	dir, err := p.floor.directory()
	if err != nil {
		return err
	}
	p.guest, _, err = p.floor.create(dir)
	return err
}

func (p *pair) close() {
	if p.guest != nil {
		p.guest.kill()
	}
	if p.sandbox != "" {
		_ = p.remove(p.sandbox)
	}
	p.stop()
}

// turns calls product and floor by turns.
func turns(n int, product, floor func() (time.Duration, error)) (ps, fs []time.Duration, err error) {
	for range n {
		p, err := product()
		if err != nil {
			return nil, nil, fmt.Errorf("product: %w", err)
		}
		f, err := floor()
		if err != nil {
			return nil, nil, fmt.Errorf("floor: %w", err)
		}
		ps, fs = append(ps, p), append(fs, f)
	}
	return ps, fs, nil
}

func measureVM(r *run) error {
	p, err := r.openPair()
	if err != nil {
		return err
	}
	defer p.close()
	return errors.Join(p.measureCreate(r), p.measureExec(r), p.measurePause(r), p.measureSleep(r), p.measureOutput(r))
}

func (p *pair) createOnce() (time.Duration, error) {
	sandbox, took, err := p.createToFirst()
	if sandbox != "" {
		err = errors.Join(err, p.remove(sandbox))
	}
	return took, err
}

func (f *floor) createOnce() (time.Duration, error) {
	dir, err := f.directory()
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	g, took, err := f.create(dir)
	if err == nil {
		g.kill()
	}
	return took, err
}

func (p *pair) measureCreate(r *run) error {
	if _, _, err := turns(3, p.createOnce, p.floor.createOnce); err != nil {
		return err
	}
	ps, fs, err := turns(r.rounds, p.createOnce, p.floor.createOnce)
	if err == nil {
		r.ratioAtMost("vm", "create → first output, from the base snapshot", fs, ps, 1.15)
	}
	return err
}

func (p *pair) measureExec(r *run) error {
	ps, fs, err := turns(2*r.rounds, func() (time.Duration, error) { return p.hello(p.sandbox) }, p.guest.hello)
	if err == nil {
		r.ratioAtMost("vm", "a further command → first output", fs, ps, 1.5)
	}
	return err
}

func timed(work func() error) (time.Duration, error) {
	began := time.Now()
	err := work()
	return time.Since(began), err
}

func (p *pair) measurePause(r *run) error {
	for _, m := range []struct {
		what, call, command, undoCall, undoCommand string
	}{
		{"pause", "pause", "stop", "wake", "cont"},
		{"resume", "wake", "cont", "pause", "stop"},
	} {
		if m.what == "resume" {
			if _, err := p.act("POST", "/v1/sandboxes/"+p.sandbox+"/pause", nil); err != nil {
				return err
			}
			if err := p.guest.call("stop", nil, nil); err != nil {
				return err
			}
		}
		var ps, fs []time.Duration
		for i := range 3 * r.rounds {
			took, err := timed(func() error { _, err := p.act("POST", "/v1/sandboxes/"+p.sandbox+"/"+m.call, nil); return err })
			if err != nil {
				return err
			}
			warm := i >= r.rounds // the first turns warm up
			if warm {
				ps = append(ps, took)
			}
			if _, err := p.act("POST", "/v1/sandboxes/"+p.sandbox+"/"+m.undoCall, nil); err != nil {
				return err
			}
			if took, err = timed(func() error { return p.guest.call(m.command, nil, nil) }); err != nil {
				return err
			}
			if warm {
				fs = append(fs, took)
			}
			if err := p.guest.call(m.undoCommand, nil, nil); err != nil {
				return err
			}
		}
		more := median(ps) - median(fs)
		r.add("vm", m.what, spread(fs), spread(ps), "+ "+millis(more), "≤ + 5.0 ms", more <= 5*time.Millisecond)
	}
	if err := p.guest.call("cont", nil, nil); err != nil {
		return err
	}
	_, err := p.act("POST", "/v1/sandboxes/"+p.sandbox+"/wake", nil)
	return err
}

func (p *pair) measureSleep(r *run) error {
	var asleep []time.Duration
	product := func() (time.Duration, error) {
		began := time.Now()
		if _, err := p.act("POST", "/v1/sandboxes/"+p.sandbox+"/suspend", nil); err != nil {
			return 0, err
		}
		asleep = append(asleep, time.Since(began))
		if _, err := p.act("POST", "/v1/sandboxes/"+p.sandbox+"/wake", nil); err != nil {
			return 0, err
		}
		up := time.Since(began)
		first, err := p.hello(p.sandbox)
		return up + first, err
	}
	floor := func() (time.Duration, error) {
		woken, took, err := p.floor.sleep(p.guest)
		if err == nil {
			p.guest = woken
		}
		return took, err
	}
	ps, fs, err := turns(max(3, r.rounds/2), product, floor)
	if err == nil {
		r.ratioAtMost("vm", "suspend → wake → first output", fs, ps, 1.2)
		r.note("of that the product's suspend: %s", spread(asleep))
	}
	return err
}

func (p *pair) measureOutput(r *run) error {
	raw, err := p.floor.rawPort()
	if err != nil {
		return err
	}
	defer raw.kill()
	kib := 128 << 10
	if r.quick {
		kib = 32 << 10
	}
	var product, port, link []float64
	for i := range max(4, r.rounds/2) {
		a, err := p.read(p.sandbox, kib)
		if err != nil {
			return fmt.Errorf("product: %w", err)
		}
		b, err := raw.read(kib)
		if err != nil {
			return fmt.Errorf("raw port: %w", err)
		}
		c, err := p.guest.read(kib)
		if err != nil {
			return fmt.Errorf("agent over grpc-go: %w", err)
		}
		if i > 0 { // the first turn warms up
			product, port, link = append(product, a), append(port, b), append(link, c)
		}
	}
	ratio := median(product) / median(link)
	r.add("vm", "output of one session, against the same link read by a bare client", rate(link), rate(product), fmt.Sprintf("%.2f ×", ratio), "≥ 0.80 ×", ratio >= 0.8)
	r.note("a second port of the guest carries %s of bytes that nobody numbers, frames or can take up again", rate(port))
	return nil
}

// measureWarm has a service of its own: refilling the pool would disturb all else.
func measureWarm(r *run) error {
	config := filepath.Join(r.dataDir, "config.yaml")
	if err := os.WriteFile(config, []byte("warm:\n  base: 2\n"), 0o644); err != nil {
		return err
	}
	defer os.Remove(config)
	p, err := r.openPair()
	if err != nil {
		return err
	}
	defer p.close()
	product := func() (time.Duration, error) {
		if err := p.awaitWarm(2); err != nil {
			return 0, err
		}
		return p.createOnce()
	}
	if _, _, err := turns(3, product, p.guest.hello); err != nil {
		return err
	}
	ps, fs, err := turns(r.rounds, product, p.guest.hello)
	if err == nil {
		r.ratioAtMost("warm", "create → first output, warm, against one exec", fs, ps, 1.5)
	}
	return err
}

func (d *daemon) awaitWarm(n int) error {
	until := time.Now().Add(startLimit)
	for d.warm() < n {
		if time.Now().After(until) {
			return errors.New("the pool was not filled")
		}
		time.Sleep(20 * time.Millisecond)
	}
	// What filled it has to come to rest.
	time.Sleep(500 * time.Millisecond)
	return nil
}

// measureMany starts many VMs at once on both sides.
func measureMany(r *run) error {
	p, err := r.openPair("limits.memory_overcommit=10")
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.measureIdle(r); err != nil {
		return err
	}
	clones, times := 50, 3
	if r.quick {
		times = 1
	}
	ps, fs, err := turns(times,
		func() (time.Duration, error) {
			sandboxes, took, err := p.createTogether(clones)
			return took, errors.Join(err, p.removeAll(sandboxes))
		},
		func() (time.Duration, error) { return p.floor.createTogether(clones) })
	if err == nil {
		r.ratioAtMost("many", fmt.Sprintf("%d clones at once, all with output", clones), fs, ps, 1.2)
	}
	return err
}

// measureIdle looks at what a sandbox that does nothing costs the service.
func (p *pair) measureIdle(r *run) error {
	const n = 20
	// Once before, so that what is made once does not count.
	sandboxes, _, err := p.createTogether(n)
	if err := errors.Join(err, p.removeAll(sandboxes)); err != nil {
		return err
	}
	heap, err := p.heap()
	if err != nil {
		return err
	}
	rss := p.rss()
	sandboxes, took, err := p.createTogether(n)
	if err != nil {
		return errors.Join(err, p.removeAll(sandboxes))
	}
	r.add("many", fmt.Sprintf("%d sandboxes at once come up", n), "", millis(took), "all", "all", true)
	after, err := p.heap()
	if err != nil {
		return err
	}
	perHeap, perRSS := (after-heap)/n, (p.rss()-rss)/n
	r.add("many", "memory of the service per idle sandbox", "", fmt.Sprintf("%.2f MiB heap", perHeap), fmt.Sprintf("%.2f MiB resident", perRSS), "≤ 1 MiB", perHeap <= 1 && perRSS <= 1)
	return p.removeAll(sandboxes)
}

func together(n int, work func(i int) error) (time.Duration, error) {
	failed := make([]error, n)
	began := time.Now()
	var group sync.WaitGroup
	for i := range n {
		group.Add(1)
		go func() {
			defer group.Done()
			failed[i] = work(i)
		}()
	}
	group.Wait()
	return time.Since(began), errors.Join(failed...)
}

func (p *pair) createTogether(n int) ([]string, time.Duration, error) {
	sandboxes := make([]string, n)
	took, err := together(n, func(i int) (err error) {
		sandboxes[i], _, err = p.createToFirst()
		return err
	})
	return sandboxes, took, err
}

func (c *client) removeAll(sandboxes []string) error {
	_, err := together(len(sandboxes), func(i int) error {
		if sandboxes[i] == "" {
			return nil
		}
		return c.remove(sandboxes[i])
	})
	return err
}

func (f *floor) createTogether(n int) (time.Duration, error) {
	dirs := make([]string, n)
	for i := range dirs {
		var err error
		if dirs[i], err = f.directory(); err != nil {
			return 0, err
		}
		defer os.RemoveAll(dirs[i])
	}
	guests := make([]*guest, n)
	took, err := together(n, func(i int) (err error) {
		guests[i], _, err = f.create(dirs[i])
		return err
	})
	for _, g := range guests {
		if g != nil {
			g.kill()
		}
	}
	return took, err
}
