package process

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"space/agent/fault"
)

const (
	// What a process wrote is in its pipes when it is dead. Its children may hold them open, and are
	// given this long to end their last words before the exit is reported.
	exitGrace = 100 * time.Millisecond
	// Reads of one pipe after the grace; a child that writes without end can't put off the exit.
	finalReads = 16
)

// Exit says how a process ended, from wait(2) alone.
type Exit struct {
	Code       int // -1 when a signal ended it
	Signal     int
	CoreDumped bool
	TimedOut   bool
}

// Process is one that was started, running or ended.
type Process struct {
	Spec    Spec
	User    string
	Cwd     string
	Pid     int
	Started time.Time

	log     *Log
	tree    tree
	reaper  *reaper
	streams []*stream
	timer   *time.Timer
	ended   func(*Process)
	noted   bool // in the table's list of ended ones

	mu       sync.Mutex
	open     int // streams that haven't ended, and the process itself
	dead     bool
	finished bool // the exit is in the log
	exit     Exit
	expired  bool

	input input
}

type stream struct {
	file *os.File
	raw  syscall.RawConn
	kind Kind
	done bool
}

// Snapshot is the state of a process at one instant.
type Snapshot struct {
	Running bool
	Exit    Exit
	LastSeq uint64
	Stdin   uint64
	Tree    int
}

// Snapshot reads the state.
func (p *Process) Snapshot() Snapshot {
	p.mu.Lock()
	running, exit := !p.finished, p.exit
	p.mu.Unlock()
	p.input.mu.Lock()
	offset := p.input.offset
	p.input.mu.Unlock()
	return Snapshot{Running: running, Exit: exit, LastSeq: p.log.lastSeq(), Stdin: offset, Tree: p.tree.size()}
}

// Exit is how the process ended; meaningful once its exit event was seen.
func (p *Process) Exit() Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Output gives every event after a seq to send, up to and with the exit.
func (p *Process) Output(ctx context.Context, after uint64, send func(Event) error) error {
	reader := p.log.attach(after)
	defer reader.detach()
	return reader.deliver(ctx, send)
}

func (p *Process) pump(s *stream) {
	for {
		ended := false
		var room chan struct{}
		err := s.raw.Read(func(fd uintptr) bool {
			for {
				var result fillResult
				switch result, room = p.log.fill(int(fd), s.kind); result {
				case wouldBlock:
					return false
				case endOfFile:
					ended = true
					return true
				case noRoom:
					return true
				case filled, discarded:
				}
			}
		})
		if ended || err != nil {
			p.streamEnded(s)
			return
		}
		<-room
	}
}

func (p *Process) streamEnded(s *stream) {
	p.mu.Lock()
	s.done = true
	p.open--
	last := p.open == 0 && !p.finished
	p.mu.Unlock()
	if s.kind != KindPty { // a terminal's end is closed at the exit: input goes the same way
		s.file.Close()
	}
	if last {
		p.finish()
	}
}

// exited runs on the reaper's goroutine.
func (p *Process) exited(status unix.WaitStatus) {
	p.mu.Lock()
	p.dead = true
	p.exit = Exit{Code: -1}
	if status.Signaled() {
		p.exit.Signal = int(status.Signal())
		p.exit.CoreDumped = status.CoreDump()
		p.exit.TimedOut = p.expired && status.Signal() == unix.SIGKILL
	} else {
		p.exit.Code = status.ExitStatus()
	}
	killRest := p.Spec.KillTreeAtExit || p.exit.TimedOut
	p.open--
	last := p.open == 0
	p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	if killRest {
		p.tree.kill()
	}
	if last {
		p.finish()
		return
	}
	time.AfterFunc(exitGrace, p.conclude)
}

// conclude reports the exit although others still hold the pipes open.
func (p *Process) conclude() {
	p.mu.Lock()
	if p.finished {
		p.mu.Unlock()
		return
	}
	var rest []*stream
	for _, s := range p.streams {
		if !s.done {
			rest = append(rest, s)
		}
	}
	p.mu.Unlock()
	for _, s := range rest {
		behind := false
		_ = s.raw.Control(func(fd uintptr) {
			for range finalReads {
				result, _ := p.log.fill(int(fd), s.kind)
				if behind = result == noRoom; result != filled {
					return
				}
			}
		})
		if behind { // a reader is attached and slow: nothing may be lost
			time.AfterFunc(exitGrace, p.conclude)
			return
		}
	}
	p.finish()
}

func (p *Process) finish() {
	p.mu.Lock()
	if p.finished {
		p.mu.Unlock()
		return
	}
	p.finished = true
	p.mu.Unlock()
	p.log.add(KindExit, true)
	p.input.close()
	if p.Spec.Pty != nil {
		p.streams[0].file.Close()
	}
	p.ended(p)
}

func (p *Process) expire() {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	p.expired = true
	p.mu.Unlock()
	p.tree.kill()
}

// Scope says whom a signal goes to.
type Scope int

// The scopes of a signal.
const (
	ScopeProcess Scope = iota
	ScopeTree
	ScopeForeground
)

const maxSignal = 64

// Signal sends a signal.
func (p *Process) Signal(number uint32, scope Scope) error {
	if number > maxSignal {
		return fault.Invalid("there is no signal %d", number)
	}
	sig := unix.Signal(number)
	var err error
	switch scope {
	case ScopeTree:
		// Also after the exit: what the process left behind is its tree.
		if p.tree.size() == 0 {
			return p.endedFault()
		}
		err = p.tree.signal(sig)
	case ScopeForeground:
		err = p.signalForeground(sig)
	default:
		err = p.reaper.signal(p.Pid, sig)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ESRCH):
		return p.endedFault()
	case errors.Is(err, unix.EINVAL):
		return fault.Invalid("there is no signal %d", number)
	default:
		return fault.Path(err, "signal")
	}
}

func (p *Process) endedFault() error {
	return fault.New(codes.FailedPrecondition, "process_ended", "the process %q has ended", p.Spec.ID)
}

func (p *Process) controlTerminal(do func(fd int) error) error {
	if p.Spec.Pty == nil {
		return fault.New(codes.FailedPrecondition, "no_terminal", "the process %q has no terminal", p.Spec.ID)
	}
	var failed error
	if err := p.streams[0].raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return p.endedFault()
	}
	return failed
}

func (p *Process) signalForeground(sig unix.Signal) error {
	return p.controlTerminal(func(fd int) error {
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if err != nil || group <= 0 {
			return unix.ESRCH
		}
		return unix.Kill(-group, sig)
	})
}

// Resize changes the terminal's window; the kernel sends SIGWINCH.
func (p *Process) Resize(size Size) error {
	if !size.valid() {
		return fault.Invalid("a terminal has 1 to %d columns and rows, not %d x %d", maxWindow, size.Cols, size.Rows)
	}
	return p.controlTerminal(func(fd int) error {
		if err := setSize(fd, size); err != nil {
			return p.endedFault()
		}
		return nil
	})
}
