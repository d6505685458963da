package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// childEnds are the descriptors that a child gets as its 0, 1 and 2.
type childEnds struct {
	in, out, err *os.File
}

func (c *childEnds) fds() []uintptr {
	return []uintptr{c.in.Fd(), c.out.Fd(), c.err.Fd()}
}

func (c *childEnds) close() {
	for _, file := range []*os.File{c.in, c.out, c.err} {
		if file != nil {
			file.Close()
		}
	}
}

// connect makes the pipes or the terminal between the agent and a child.
func (p *Process) connect(uid int) (ends *childEnds, err error) {
	ends = &childEnds{}
	defer func() {
		if err != nil {
			ends.close()
			p.abandon()
		}
	}()
	if p.Spec.Pty != nil {
		controller, terminal, err := openPty(*p.Spec.Pty, uid)
		if err != nil {
			return ends, err
		}
		ends.in = terminal
		ends.out, ends.err = terminal, terminal
		p.input.file, p.input.isPty = controller, true
		return ends, p.follow(controller, KindPty)
	}
	if p.Spec.Stdin {
		read, write, err := pipe(1)
		if err != nil {
			return ends, err
		}
		ends.in, p.input.file = read, write
	} else if ends.in, err = os.OpenFile(os.DevNull, os.O_RDONLY, 0); err != nil {
		return ends, err
	}
	var from *os.File
	if from, ends.out, err = pipe(0); err != nil {
		return ends, err
	}
	if err = p.follow(from, KindStdout); err != nil {
		return ends, err
	}
	if from, ends.err, err = pipe(0); err != nil {
		return ends, err
	}
	return ends, p.follow(from, KindStderr)
}

// pipe makes a pipe of which only the agent's end, 0 or 1, doesn't block.
func pipe(own int) (read, write *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	if err := unix.SetNonblock(fds[own], true); err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

func (p *Process) follow(file *os.File, kind Kind) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	p.streams = append(p.streams, &stream{file: file, raw: raw, kind: kind})
	return nil
}

// abandon closes the agent's ends of a process that never ran.
func (p *Process) abandon() {
	for _, s := range p.streams {
		s.file.Close()
	}
	if p.input.file != nil && !p.input.isPty {
		p.input.file.Close()
	}
}
