package process

import (
	"errors"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reaper owns all waiting for children of this process: of those it spawned and, where the agent is
// PID 1 or a subreaper, of orphans. Nothing else may call wait, so that no status is ever stolen.
//
// One thread blocks in waitid(WNOWAIT), which wakes with the first death and needs no signal. The
// lock is held from the fork to the registration, so a child that dies at once is still known.
type reaper struct {
	mu       sync.Mutex
	changed  sync.Cond
	spawned  uint64
	children map[int]func(unix.WaitStatus)
}

func newReaper() *reaper {
	r := &reaper{children: map[int]func(unix.WaitStatus){}}
	r.changed.L = &r.mu
	go r.run()
	return r
}

// spawn forks and executes. exited is called once, from the reaper's goroutine; it may not block.
func (r *reaper) spawn(argv0 string, argv []string, attr *syscall.ProcAttr, exited func(unix.WaitStatus)) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(argv0, argv, attr)
	if err != nil {
		return 0, err
	}
	r.children[pid] = exited
	r.spawned++
	r.changed.Signal()
	return pid, nil
}

// signal sends to a child that wasn't reaped yet, so the pid is certainly its own.
func (r *reaper) signal(pid int, sig unix.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.children[pid]; !known {
		return unix.ESRCH
	}
	return unix.Kill(pid, sig)
}

func (r *reaper) run() {
	for {
		r.mu.Lock()
		seen := r.spawned
		r.mu.Unlock()
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case err == nil:
			r.collect()
		case errors.Is(err, unix.ECHILD):
			// Without children there are no orphans to come either.
			r.mu.Lock()
			for r.spawned == seen {
				r.changed.Wait()
			}
			r.mu.Unlock()
		}
	}
}

func (r *reaper) collect() {
	for {
		r.mu.Lock()
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			r.mu.Unlock()
			continue
		}
		if err != nil || pid <= 0 {
			r.mu.Unlock()
			return
		}
		exited := r.children[pid]
		delete(r.children, pid)
		r.mu.Unlock()
		if exited != nil {
			exited(status)
		}
	}
}
