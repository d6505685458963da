// Package process starts, follows and ends the guest's processes.
package process

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"space/agent/account"
	"space/agent/fault"
)

const (
	maxProcesses = 4096 // running and ended together
	crowdedBytes = totalLogBytes / 2
)

// Table holds all processes that were started through the link.
type Table struct {
	accounts account.Directory
	cgroups  *Cgroups // nil: trees are found by scanning
	reaper   *reaper
	budget   *budget

	mu        sync.Mutex
	processes map[string]*Process
	starting  map[string]chan struct{}
	endedIDs  []string // in order of their end
	lingering []tree   // of released processes that left something behind
	defaults  Defaults
}

// NewTable starts the reaper. From then on nothing else in this program may wait for children.
func NewTable(accounts account.Directory, cgroups *Cgroups) *Table {
	return &Table{
		accounts: accounts, cgroups: cgroups, reaper: newReaper(), budget: &budget{},
		processes: map[string]*Process{}, starting: map[string]chan struct{}{},
	}
}

// SetDefaults is for the processes started from now on.
func (t *Table) SetDefaults(defaults Defaults) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.defaults = defaults
}

// Defaults are the ones set last.
func (t *Table) Defaults() Defaults {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.defaults
}

// Start starts a process, or gives the one that has the id already.
func (t *Table) Start(spec Spec) (p *Process, existed bool, err error) {
	if err := spec.check(); err != nil {
		return nil, false, err
	}
	for {
		t.mu.Lock()
		if p := t.processes[spec.ID]; p != nil {
			t.mu.Unlock()
			return p, true, nil
		}
		busy, taken := t.starting[spec.ID]
		if !taken {
			break
		}
		t.mu.Unlock()
		<-busy
	}
	if !t.makeRoom() {
		t.mu.Unlock()
		return nil, false, fault.New(codes.ResourceExhausted, "too_many_processes", "%d processes run already", maxProcesses)
	}
	started := make(chan struct{})
	t.starting[spec.ID] = started
	defaults := t.defaults
	t.mu.Unlock()

	p, err = t.launch(spec, defaults)

	t.mu.Lock()
	if err == nil {
		t.processes[spec.ID] = p
		p.mu.Lock()
		finished := p.finished
		p.mu.Unlock()
		if finished {
			t.noteEnd(p)
		}
	}
	delete(t.starting, spec.ID)
	t.mu.Unlock()
	close(started)
	return p, false, err
}

// makeRoom forgets the process that ended first, when the table is full.
func (t *Table) makeRoom() bool {
	for len(t.processes)+len(t.starting) >= maxProcesses {
		if len(t.endedIDs) == 0 {
			return false
		}
		t.forget(t.endedIDs[0])
	}
	return true
}

func (t *Table) forget(id string) {
	p := t.processes[id]
	delete(t.processes, id)
	for i, other := range t.endedIDs {
		if other == id {
			t.endedIDs = append(t.endedIDs[:i], t.endedIDs[i+1:]...)
			break
		}
	}
	if p != nil {
		p.log.close()
		if !p.tree.remove() {
			t.lingering = append(t.lingering, p.tree)
		}
	}
}

func (t *Table) launch(spec Spec, defaults Defaults) (*Process, error) {
	found, err := spec.resolve(defaults, t.accounts)
	if err != nil {
		return nil, err
	}
	p := &Process{
		Spec: spec, User: found.account.Name, Cwd: found.cwd, Started: time.Now(),
		log: newLog(t.budget), reaper: t.reaper, ended: t.onEnd,
	}
	ends, err := p.connect(int(found.account.UID))
	if err != nil {
		return nil, fault.New(codes.ResourceExhausted, "too_many_processes", "pipes for the process: %v", err)
	}
	defer ends.close()
	attr := &syscall.ProcAttr{
		Dir:   found.cwd,
		Env:   found.env,
		Files: ends.fds(),
		Sys: &syscall.SysProcAttr{
			Setsid:  true,
			Setctty: spec.Pty != nil,
		},
	}
	if os.Getuid() == 0 {
		attr.Sys.Credential = &syscall.Credential{
			Uid: found.account.UID, Gid: found.account.GID, Groups: found.account.Groups,
		}
	}
	scan := &scanned{marker: []byte(markerName + "=" + spec.ID + "\x00")}
	if t.cgroups != nil {
		group, err := t.cgroups.take()
		if err != nil {
			p.abandon()
			return nil, fault.Internal("a cgroup for the process: %v", err)
		}
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, group.fd
		p.tree = group
	} else {
		attr.Env = append(attr.Env, markerName+"="+spec.ID)
		p.tree = scan
	}
	p.log.add(KindStarted, false)
	p.open = 1 + len(p.streams)
	// The exit may be known before spawn returns; whoever handles it needs the pid and the timer.
	p.mu.Lock()
	pid, err := t.reaper.spawn(found.program, spec.Argv, attr, p.exited)
	if err != nil {
		p.mu.Unlock()
		p.abandon()
		p.log.close()
		p.tree.remove()
		return nil, startFault(err, spec.Argv[0], found.cwd)
	}
	p.Pid, scan.pid = pid, pid
	if spec.Timeout > 0 {
		p.timer = time.AfterFunc(spec.Timeout, p.expire)
	}
	p.mu.Unlock()
	for _, s := range p.streams {
		go p.pump(s)
	}
	if t.cgroups != nil {
		go t.tidy()
	}
	return p, nil
}

// tidy makes the next cgroup ahead and removes those whose last process is gone.
func (t *Table) tidy() {
	t.cgroups.prepare()
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := t.lingering[:0]
	for _, left := range t.lingering {
		if !left.remove() {
			rest = append(rest, left)
		}
	}
	t.lingering = rest
}

func (t *Table) noteEnd(p *Process) {
	if !p.noted {
		p.noted = true
		t.endedIDs = append(t.endedIDs, p.Spec.ID)
	}
}

func (t *Table) onEnd(p *Process) {
	p.tree.remove()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.processes[p.Spec.ID] == p {
		t.noteEnd(p)
	}
	for _, id := range t.endedIDs {
		if t.budget.used.Load() <= crowdedBytes {
			break
		}
		t.processes[id].log.forget()
	}
}

// Get finds a process by its id.
func (t *Table) Get(id string) (*Process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.processes[id]; p != nil {
		return p, nil
	}
	return nil, fault.New(codes.NotFound, "process_not_found", "there is no process %q", id)
}

// List gives all processes.
func (t *Table) List() []*Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*Process, 0, len(t.processes))
	for _, p := range t.processes {
		all = append(all, p)
	}
	return all
}

// Release forgets an ended process and its log; an unknown one is NOT_FOUND.
func (t *Table) Release(id string) error {
	p, err := t.Get(id)
	if err != nil {
		return err
	}
	if p.Snapshot().Running {
		return fault.New(codes.FailedPrecondition, "process_running", "the process %q still runs", id)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.processes[id] == p {
		t.forget(id)
	}
	return nil
}

// SignalAll sends a signal to every tree.
func (t *Table) SignalAll(sig unix.Signal) {
	t.mu.Lock()
	trees := append([]tree(nil), t.lingering...)
	for _, p := range t.processes {
		trees = append(trees, p.tree)
	}
	t.mu.Unlock()
	for _, each := range trees {
		_ = each.signal(sig)
	}
}

// Living counts the processes of all trees.
func (t *Table) Living() int {
	t.mu.Lock()
	trees := append([]tree(nil), t.lingering...)
	for _, p := range t.processes {
		trees = append(trees, p.tree)
	}
	t.mu.Unlock()
	count := 0
	for _, each := range trees {
		count += each.size()
	}
	return count
}
