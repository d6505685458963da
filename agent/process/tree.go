package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// tree is a process with everything that it brought forth.
type tree interface {
	// kill ends all of it at once.
	kill()
	signal(sig unix.Signal) error
	size() int
	// remove gives back what the tree holds; false when something of it still lives.
	remove() bool
}

// Cgroups makes one cgroup v2 per process. A process can't leave it by changing its session, its
// group or its parent, so cgroup.kill reaches everything.
type Cgroups struct {
	root string

	mu    sync.Mutex
	made  uint64
	spare *cgroup
}

// OpenCgroups uses a directory of a cgroup2 file system, which it makes. The error says why it can't.
func OpenCgroups(root string) (*Cgroups, error) {
	if err := os.Mkdir(root, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	c := &Cgroups{root: root}
	first, err := c.create()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(first.dir, "cgroup.kill")); err != nil {
		first.remove()
		return nil, fmt.Errorf("no cgroup.kill (Linux 5.14 or newer is needed): %w", err)
	}
	c.spare = first
	return c, nil
}

// Close removes what is unused.
func (c *Cgroups) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spare != nil {
		c.spare.remove()
		c.spare = nil
	}
	_ = unix.Rmdir(c.root)
}

func (c *Cgroups) create() (*cgroup, error) {
	c.made++
	dir := filepath.Join(c.root, strconv.FormatUint(c.made, 10))
	if err := unix.Mkdir(dir, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("mkdir %s: %w", dir, err)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return &cgroup{dir: dir, fd: fd}, nil
}

// take gives the cgroup that was made ahead, so that a start needn't wait for one.
func (c *Cgroups) take() (*cgroup, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ready := c.spare; ready != nil {
		c.spare = nil
		return ready, nil
	}
	return c.create()
}

func (c *Cgroups) prepare() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spare == nil {
		c.spare, _ = c.create() // a failure is met again, and reported, by the next take
	}
}

type cgroup struct {
	dir string
	mu  sync.Mutex
	fd  int // -1 after remove
}

func (g *cgroup) kill() {
	file, err := g.open("cgroup.kill", unix.O_WRONLY)
	if err != nil {
		return
	}
	_, _ = unix.Write(file, []byte("1"))
	_ = unix.Close(file)
}

func (g *cgroup) open(name string, flags int) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fd < 0 {
		return -1, unix.ENOENT
	}
	return unix.Openat(g.fd, name, flags|unix.O_CLOEXEC, 0)
}

// pids includes those of cgroups that the processes made below.
func (g *cgroup) pids() []int {
	return cgroupPids(g.dir, 8)
}

func cgroupPids(dir string, depth int) []int {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, line := range bytes.Fields(text) {
		if pid, err := strconv.Atoi(string(line)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	if depth > 0 {
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if entry.IsDir() {
				pids = append(pids, cgroupPids(filepath.Join(dir, entry.Name()), depth-1)...)
			}
		}
	}
	return pids
}

func (g *cgroup) signal(sig unix.Signal) error {
	if sig == unix.SIGKILL {
		g.kill()
		return nil
	}
	for _, pid := range g.pids() {
		if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

func (g *cgroup) size() int {
	g.mu.Lock()
	gone := g.fd < 0
	g.mu.Unlock()
	if gone {
		return 0
	}
	return len(g.pids())
}

func (g *cgroup) remove() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fd < 0 {
		return true
	}
	if err := unix.Rmdir(g.dir); errors.Is(err, unix.EBUSY) && !removeNested(g.dir) {
		return false
	}
	_ = unix.Close(g.fd)
	g.fd = -1
	return true
}

// removeNested removes cgroups that the processes left below theirs.
func removeNested(dir string) bool {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.IsDir() && !removeNested(filepath.Join(dir, entry.Name())) {
			return false
		}
	}
	return unix.Rmdir(dir) == nil
}

// scanned finds a tree in /proc by parents, sessions and an environment entry. It is only for running
// the agent as an ordinary process without a cgroup2 of its own: what changes its session, is orphaned
// and clears its environment escapes it.
type scanned struct {
	pid    int
	marker []byte
}

const markerName = "SPACE_PROCESS_TREE"

func (s *scanned) pids() []int {
	type info struct{ parent, session int }
	all := map[int]info{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) < 4 || fields[0] == "Z" {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		session, _ := strconv.Atoi(fields[3])
		all[pid] = info{parent, session}
	}
	member := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for pid, of := range all {
			if !member[pid] && (pid == s.pid || of.session == s.pid || member[of.parent] || s.marked(pid)) {
				member[pid], grown = true, true
			}
		}
	}
	pids := make([]int, 0, len(member))
	for pid := range member {
		pids = append(pids, pid)
	}
	return pids
}

func (s *scanned) marked(pid int) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(env, s.marker)
}

func (s *scanned) kill() {
	const rounds = 50 // a tree that forks faster than it is scanned isn't caught at all
	for range rounds {
		pids := s.pids()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func (s *scanned) signal(sig unix.Signal) error {
	if sig == unix.SIGKILL {
		s.kill()
		return nil
	}
	for _, pid := range s.pids() {
		_ = unix.Kill(pid, sig)
	}
	return nil
}

func (s *scanned) size() int { return len(s.pids()) }

func (s *scanned) remove() bool { return s.size() == 0 }
