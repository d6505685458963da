package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stateWait  = 60 * time.Second
	hangUpWait = 2 * time.Second
	serialPort = "space.agent"
)

// qemuGuest is a guest that QEMU runs in software. Its vsock device is a virtio-serial port: one
// connection at a time, to the one port on which the agent listens. A newer connection ends the older.
type qemuGuest struct {
	machine *machine
	command *exec.Cmd
	qmp     *qmp
	// socket is the abstract address of the serial port's host side.
	socket string
	port   uint32
	// own is the memory of a booted guest; base is what a restored one maps privately.
	own  *os.File
	base string
	// state is where QEMU writes the devices' state to.
	state *os.File
	said  *tail
	gone  chan struct{}

	mu        sync.Mutex
	listening bool
	current   guestConn
	killed    bool
}

// tail passes on what a process says, and keeps the end of it.
type tail struct {
	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if len(t.last) > 2048 {
		t.last = t.last[len(t.last)-2048:]
	}
	return os.Stderr.Write(p)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}

func bootQemu(m *machine, s settings) (guest, error) {
	own, err := memoryFile("guest", m.config.MemoryMib<<20)
	if err != nil {
		return nil, err
	}
	kernel := m.config.Kernel
	if s.Kernel != "" {
		kernel = s.Kernel
	}
	args := []string{"-kernel", kernel, "-append", kernelArguments(m.config)}
	if m.config.Initrd != "" {
		args = append(args, "-initrd", m.config.Initrd)
	}
	g, err := startQemu(m, s, own, "", args, nil)
	if err != nil {
		return nil, err
	}
	if err := g.resume(); err != nil {
		g.kill()
		return nil, err
	}
	return g, nil
}

// restoreQemu maps the memory as Firecracker does: privately, and only what is touched is read.
func restoreQemu(m *machine, s settings, memory string, state savedState) (guest, error) {
	if len(state.Devices) == 0 {
		return nil, errors.New("the state has no devices")
	}
	mapped := memory
	var copied *os.File
	// QEMU opens it for writing, though it never writes.
	if unix.Access(memory, unix.W_OK) != nil {
		var err error
		if copied, err = memoryFile("copy", m.config.MemoryMib<<20); err != nil {
			return nil, err
		}
		from, err := os.Open(memory)
		if err != nil {
			return nil, err
		}
		err = copyData(from, copied, m.config.MemoryMib<<20, true)
		from.Close()
		if err != nil {
			return nil, err
		}
		mapped = ""
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	g, err := startQemu(m, s, copied, mapped, nil, reader)
	if err != nil {
		writer.Close()
		return nil, err
	}
	g.base, g.own = memory, nil
	g.listening = state.Devices[0] == 1
	go func() {
		_, _ = writer.Write(state.Devices[1:])
		writer.Close()
	}()
	if !g.qmp.await(stateWait, "MIGRATION", "completed", "failed") {
		g.kill()
		return nil, fmt.Errorf("Failed to restore devices: QEMU does not take their state: %s", g.said)
	}
	return g, nil
}

// kernelArguments are those given, but for the bus of the disks, the way to the agent, and the words that
// emulated hardware needs.
func kernelArguments(c config) string {
	var words []string
	for _, word := range strings.Fields(c.Args) {
		if word != "pci=off" && !strings.HasPrefix(word, "space.link=vsock:") {
			words = append(words, word)
		}
	}
	if len(c.Drives) > 0 && c.Drives[0].Root {
		mode := "rw"
		if c.Drives[0].ReadOnly {
			mode = "ro"
		}
		words = append(words, "root=/dev/vda", mode)
	}
	return strings.Join(append(words, "space.link=virtio:"+serialPort, "no_timer_check", "tsc=reliable",
		"random.trust_cpu=on"), " ")
}

// agentPort is where the guest's agent would listen.
func agentPort(args string, s settings) uint32 {
	port := s.Port
	for _, word := range strings.Fields(args) {
		if given, found := strings.CutPrefix(word, "space.link=vsock:"); found {
			_, _ = fmt.Sscan(given, &port)
		}
	}
	return port
}

func memoryFile(name string, bytes int64) (*os.File, error) {
	fd, err := unix.MemfdCreate("fake-firecracker-"+name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	return file, file.Truncate(bytes)
}

// Numbers of the files that QEMU inherits, after its three.
const (
	qmpFile = 3 + iota
	stateFile
	memFile
	incomingFile
)

// startQemu starts a process that is paused. Memory is a file of the guest's own, or a path to map privately.
func startQemu(m *machine, s settings, own *os.File, mapped string, args []string, incoming *os.File) (*qemuGuest, error) {
	raiseFileSize()
	here, there, err := socketPair()
	if err != nil {
		return nil, err
	}
	theirs, err := there.File()
	there.Close()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	state, err := memoryFile("state", 0)
	if err != nil {
		return nil, err
	}
	g := &qemuGuest{machine: m, own: own, state: state, said: &tail{}, gone: make(chan struct{}),
		port: agentPort(m.config.Args, s), socket: fmt.Sprintf("fake-firecracker-%d-%d", os.Getpid(), time.Now().UnixNano())}
	memory, shared := fmt.Sprintf("/proc/self/fd/%d", memFile), "on"
	if mapped != "" {
		memory = mapped
	}
	if incoming != nil {
		shared = "off"
	}
	all := machineArguments(m.config, memory, shared, g.socket)
	if m.hasConsole() {
		all = append(all, "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console")
	}
	all = append(all, "-S")
	if incoming != nil {
		all = append(all, "-incoming", fmt.Sprintf("fd:%d", incomingFile))
	}
	g.command = exec.Command(s.qemuProgram(), append(all, args...)...)
	if own == nil {
		own = state // only to fill its place
	}
	g.command.ExtraFiles = []*os.File{theirs, state, own}
	if incoming != nil {
		g.command.ExtraFiles = append(g.command.ExtraFiles, incoming)
	}
	// Given, because a jail has no /dev/null.
	g.command.Stdin, g.command.Stdout, g.command.Stderr = os.Stdin, os.Stdout, g.said
	if m.serial != "" {
		out, err := openOutput(m.serial)
		if err != nil {
			return nil, err
		}
		defer out.Close()
		g.command.Stdout = out
	}
	// It ends with this process, however that ends.
	g.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The signal is sent when the thread that started it ends.
		runtime.LockOSThread()
		err := g.command.Start()
		started <- err
		if err == nil {
			_ = g.command.Wait()
			close(g.gone)
			g.ended()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("QEMU does not start: %w", err)
	}
	if g.qmp, err = openQmp(here, g.event); err != nil {
		g.kill()
		return nil, fmt.Errorf("QEMU does not start: %w: %s", err, g.said)
	}
	return g, nil
}

func (m *machine) hasConsole() bool {
	return strings.Contains(m.config.Args, "console=ttyS0") && !strings.Contains(m.config.Args, "8250.nr_uarts=0")
}

func machineArguments(c config, memory, shared, socket string) []string {
	a := []string{
		"-name", "fake-firecracker",
		"-M", "q35,smm=off,sata=off,usb=off,vmport=off,dump-guest-core=off,suppress-vmdesc=on,memory-backend=mem",
		"-accel", "tcg,thread=multi", "-cpu", "max",
		"-smp", fmt.Sprint(c.VCPUs), "-m", fmt.Sprintf("%dM", c.MemoryMib),
		"-object", fmt.Sprintf("memory-backend-file,id=mem,size=%dM,share=%s,mem-path=%s", c.MemoryMib, shared, escaped(memory)),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-no-shutdown",
		// The stream then begins with the devices.
		"-global", "migration.send-configuration=off", "-global", "migration.store-global-state=off",
	}
	for i, d := range c.Drives {
		a = append(a, "-blockdev", fmt.Sprintf("driver=raw,node-name=drive%d,read-only=%s,cache.no-flush=%s,discard=unmap,"+
			"file.driver=file,file.locking=off,file.discard=unmap,file.filename=%s",
			i, onOff(d.ReadOnly), onOff(d.Cache != "Writeback"), escaped(d.Path)),
			"-device", fmt.Sprintf("virtio-blk-pci,id=blk%d,drive=drive%d", i, i))
	}
	if c.Vsock != nil {
		a = append(a, "-device", "virtio-serial-pci,max_ports=2",
			"-chardev", "socket,id=agent,server=on,wait=off,abstract=on,path="+socket,
			"-device", "virtserialport,id=port,chardev=agent,name="+serialPort)
	}
	if c.Entropy != nil {
		a = append(a, "-device", "virtio-rng-pci")
	}
	if b := c.Balloon; b != nil {
		a = append(a, "-device", fmt.Sprintf("virtio-balloon-pci,id=balloon,deflate-on-oom=%s,free-page-reporting=%s",
			onOff(b.DeflateOOM), onOff(b.Reporting)))
	}
	return append(a, "-chardev", fmt.Sprintf("socket,id=qmp,fd=%d", qmpFile), "-mon", "chardev=qmp,mode=control")
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// escaped: a comma in a value is written twice.
func escaped(path string) string { return strings.ReplaceAll(path, ",", ",,") }

// raiseFileSize lifts the soft limit: the guest's memory is a file here, as it isn't in the real one.
func raiseFileSize() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && limit.Cur != limit.Max {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)
	}
}

func (g *qemuGuest) event(name string, data map[string]any) {
	switch name {
	case "VSERPORT_CHANGE":
		open, _ := data["open"].(bool)
		g.mu.Lock()
		g.listening = open
		g.mu.Unlock()
	case "SHUTDOWN":
		// A power-off leaves Firecracker on x86 as it is; only a reset ends it.
		if data["reason"] == "guest-reset" {
			go g.machine.rebooted()
		}
	}
}

func (g *qemuGuest) ended() {
	g.mu.Lock()
	killed := g.killed
	g.mu.Unlock()
	if !killed {
		g.machine.log.write("ERROR", "QEMU ended: "+g.said.String())
		g.machine.end(exitUnexpected)
	}
}

func (g *qemuGuest) pause() error { return g.qmp.run("stop", nil, nil) }

func (g *qemuGuest) resume() error { return g.qmp.run("cont", nil, nil) }

func (g *qemuGuest) dial(port uint32) (guestConn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if port != g.port || !g.listening {
		return nil, errNobody
	}
	if g.current != nil {
		g.current.Close()
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: "@" + g.socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	g.current = conn
	return conn, nil
}

func (g *qemuGuest) hangUp() {
	g.mu.Lock()
	if g.current != nil {
		g.current.Close()
		g.current = nil
	}
	g.mu.Unlock()
	for deadline := time.Now().Add(hangUpWait); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var devices []struct{ Label, Filename string }
		if err := g.qmp.run("query-chardev", nil, &devices); err != nil {
			return
		}
		connected := false
		for _, d := range devices {
			connected = connected || d.Label == "agent" && !strings.HasPrefix(d.Filename, "disconnected:")
		}
		if !connected {
			return
		}
	}
}

func (g *qemuGuest) save() ([]byte, error) {
	if err := g.state.Truncate(0); err != nil {
		return nil, err
	}
	where := map[string]any{"filename": fmt.Sprintf("/proc/self/fd/%d", stateFile), "live": false}
	if err := g.qmp.run("xen-save-devices-state", where, nil); err != nil {
		return nil, err
	}
	g.mu.Lock()
	listening := byte(0)
	if g.listening {
		listening = 1
	}
	g.mu.Unlock()
	info, err := g.state.Stat()
	if err != nil {
		return nil, err
	}
	all := make([]byte, 1+info.Size())
	all[0] = listening
	_, err = g.state.ReadAt(all[1:], 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

func (g *qemuGuest) resize(index int, path string) error {
	if path != g.machine.config.Drives[index].Path {
		return errors.New("the fake doesn't change a drive's file")
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return g.qmp.run("block_resize", map[string]any{"node-name": fmt.Sprintf("drive%d", index), "size": info.Size()}, nil)
}

func (g *qemuGuest) setBalloon(mib int64) error {
	return g.qmp.run("balloon", map[string]any{"value": (g.machine.config.MemoryMib - mib) << 20}, nil)
}

func (g *qemuGuest) balloonMib() (int64, error) {
	var found struct{ Actual int64 }
	err := g.qmp.run("query-balloon", nil, &found)
	return g.machine.config.MemoryMib - found.Actual>>20, err
}

func (g *qemuGuest) ctrlAltDel() error {
	var keys []map[string]string
	for _, key := range []string{"ctrl", "alt", "delete"} {
		keys = append(keys, map[string]string{"type": "qcode", "data": key})
	}
	return g.qmp.run("send-key", map[string]any{"keys": keys}, nil)
}

func (g *qemuGuest) kill() {
	g.mu.Lock()
	g.killed = true
	g.mu.Unlock()
	_ = g.command.Process.Kill()
	<-g.gone
}

func socketPair() (*net.UnixConn, *net.UnixConn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			return nil, nil, err
		}
		conns[i] = conn.(*net.UnixConn)
	}
	return conns[0], conns[1], nil
}
