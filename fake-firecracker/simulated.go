package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

var errNobody = errors.New("nobody listens")

// simulated is a guest that isn't there: some ports answer, and its memory is one page, which counts how
// often it ran.
type simulated struct {
	machine *machine
	ready   time.Time

	mu    sync.Mutex
	conns map[net.Conn]bool
	runs  uint64
	mib   int64
}

func bootGuest(m *machine, s settings) (guest, error) {
	switch s.Guest {
	case "qemu":
		return bootQemu(m, s)
	case "none":
		g := &simulated{machine: m, conns: map[net.Conn]bool{}, runs: 1,
			ready: time.Now().Add(time.Duration(s.ReadyMillis) * time.Millisecond)}
		if s.RebootMillis > 0 {
			time.AfterFunc(time.Duration(s.RebootMillis)*time.Millisecond, m.rebooted)
		}
		return g, nil
	}
	return nil, errors.New("unknown guest " + s.Guest)
}

func restoreGuest(m *machine, s settings, memory string, state savedState) (guest, error) {
	if state.Guest != s.Guest {
		return nil, errors.New("the snapshot is of a guest that is " + state.Guest)
	}
	if s.Guest == "qemu" {
		return restoreQemu(m, s, memory, state)
	}
	file, err := os.Open(memory)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var page [8]byte
	if _, err := file.ReadAt(page[:], 0); err != nil {
		return nil, err
	}
	return &simulated{machine: m, conns: map[net.Conn]bool{}, runs: binary.LittleEndian.Uint64(page[:])}, nil
}

func (g *simulated) pause() error { return nil }

func (g *simulated) resume() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runs++
	return nil
}

func (g *simulated) dial(port uint32) (guestConn, error) {
	what, listens := readSettings().Ports[strconv.FormatUint(uint64(port), 10)]
	if !listens || time.Now().Before(g.ready) {
		return nil, errNobody
	}
	here, there, err := socketPair()
	if err != nil {
		return nil, err
	}
	go answerPort(there, what)
	return here, nil
}

func answerPort(conn *net.UnixConn, what string) {
	defer conn.Close()
	switch banner, isBanner := strings.CutPrefix(what, "banner:"); {
	case isBanner:
		_, _ = io.WriteString(conn, banner)
	case what == "echo":
		_, _ = io.Copy(conn, conn)
	default: // "sink" and "silent"
		_, _ = io.Copy(io.Discard, conn)
	}
}

func (g *simulated) hangUp() {}

func (g *simulated) save() ([]byte, error) { return []byte("simulated"), nil }

func (g *simulated) copyMemory(to *os.File, _ bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := to.WriteAt(binary.LittleEndian.AppendUint64(nil, g.runs), 0)
	return err
}

func (g *simulated) resize(int, string) error { return nil }

func (g *simulated) setBalloon(mib int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mib = mib
	return nil
}

func (g *simulated) balloonMib() (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mib, nil
}

// ctrlAltDel reboots, as a guest's init does when it is asked so.
func (g *simulated) ctrlAltDel() error {
	time.AfterFunc(10*time.Millisecond, g.machine.rebooted)
	return nil
}

func (g *simulated) kill() {}
