package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const startLimit = 60 * time.Second

// machine is how the product itself starts QEMU: the arguments of one of its running VMs. What is
// compared differs in nothing but who does it.
type machine struct {
	argv   []string // of a restore; paths below its own directory are replaced by those of the clone
	dir    string   // the directory of the VM that it was read from
	base   string   // the base snapshot: memory, state, disk.img
	kernel string
	initrd string
}

// readMachine takes the command line from the running VM of a sandbox.
func readMachine(dataDir, sandbox string) (machine, error) {
	m := machine{dir: filepath.Join(dataDir, "vms", sandbox)}
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, entry := range entries {
		text, err := os.ReadFile(entry)
		if err != nil || !strings.Contains(string(text), m.dir+"/") {
			continue
		}
		m.argv = strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
	}
	if m.argv == nil {
		return m, errors.New("no QEMU process works in " + m.dir)
	}
	for _, arg := range m.argv {
		if _, path, ok := strings.Cut(arg, "mem-path="); ok {
			m.base = filepath.Dir(strings.ReplaceAll(path, ",,", ","))
		}
	}
	if !slices.Contains(m.argv, "-incoming") || m.base == "" {
		return m, errors.New("the VM was not restored from a base snapshot: " + strings.Join(m.argv, " "))
	}
	kernels, _ := filepath.Glob(filepath.Join(dataDir, "kernel", "*", "vmlinuz*"))
	more, _ := filepath.Glob(filepath.Join(dataDir, "kernel", "vmlinuz*"))
	images, _ := filepath.Glob(filepath.Join(dataDir, "boot", "initramfs-*.img"))
	if kernels = append(kernels, more...); len(kernels) > 0 && len(images) > 0 {
		m.kernel, m.initrd = kernels[len(kernels)-1], images[len(images)-1]
	}
	return m, nil
}

// restore gives the arguments of a clone in a directory.
func (m machine) restore(dir string) []string {
	argv := slices.Clone(m.argv)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], m.dir+"/", dir+"/")
	}
	return argv
}

const kernelArguments = "console=ttyS0 quiet panic=-1 reboot=t no_timer_check random.trust_cpu=on" +
	" tsc=reliable space.link=virtio:space.agent"

// bootWithRawPort gives the arguments of a cold boot of the same machine with one more port on the same
// virtio-serial bus, through which nothing but bytes goes.
func (m machine) bootWithRawPort(dir string) []string {
	var argv []string
	restored := m.restore(dir)
	for i := 0; i < len(restored); i++ {
		arg := restored[i]
		switch {
		case arg == "-S":
			continue
		case arg == "-incoming":
			i++
			continue
		case strings.HasPrefix(arg, "memory-backend-file,"):
			head, _, _ := strings.Cut(arg, ",share=")
			arg = head + ",share=on,mem-path=memory"
		case strings.HasPrefix(arg, "virtio-serial-pci,"):
			arg = "virtio-serial-pci,max_ports=3"
		}
		argv = append(argv, arg)
		if strings.HasPrefix(arg, "virtserialport,") {
			argv = append(argv, "-chardev", "socket,id=raw,server=on,wait=off,path=raw.sock",
				"-device", "virtserialport,chardev=raw,name=space.raw")
		}
	}
	return append(argv, "-kernel", m.kernel, "-initrd", m.initrd, "-append", kernelArguments)
}

// vm is a running QEMU with its own directory.
type vm struct {
	dir     string
	process *exec.Cmd
	qmp     net.Conn
	answers *bufio.Reader
}

func start(dir string, argv []string) (*vm, error) {
	log, err := os.Create(filepath.Join(dir, "qemu.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	process := exec.Command(argv[0], argv[1:]...)
	process.Dir, process.Stdout, process.Stderr = dir, log, log
	if err := process.Start(); err != nil {
		return nil, err
	}
	v := &vm{dir: dir, process: process}
	if err := v.open(); err != nil {
		v.kill()
		return nil, err
	}
	return v, nil
}

func (v *vm) open() (err error) {
	if v.qmp, err = v.dial("qmp.sock"); err != nil {
		return err
	}
	v.answers = bufio.NewReader(v.qmp)
	if _, err := v.answers.ReadBytes('\n'); err != nil {
		return err
	}
	return v.call("qmp_capabilities", nil, nil)
}

// dial connects to a socket as soon as QEMU has made it.
func (v *vm) dial(name string) (net.Conn, error) {
	until := time.Now().Add(startLimit)
	for {
		conn, err := net.Dial("unix", filepath.Join(v.dir, name))
		if err == nil {
			return conn, nil
		}
		if time.Now().After(until) {
			return nil, v.said(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func (v *vm) said(err error) error {
	log, _ := os.ReadFile(filepath.Join(v.dir, "qemu.log"))
	return fmt.Errorf("%w; QEMU says: %s", err, log)
}

func (v *vm) call(command string, arguments map[string]any, answer any) error {
	message := map[string]any{"execute": command}
	if arguments != nil {
		message["arguments"] = arguments
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := v.qmp.Write(append(text, '\n')); err != nil {
		return err
	}
	for {
		line, err := v.answers.ReadBytes('\n')
		if err != nil {
			return v.said(fmt.Errorf("%s: %w", command, err))
		}
		var reply struct {
			Return json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := json.Unmarshal(line, &reply); err != nil {
			return err
		}
		switch {
		case reply.Error != nil:
			return fmt.Errorf("%s: %s", command, reply.Error.Desc)
		case reply.Return == nil: // an event
		case answer == nil:
			return nil
		default:
			return json.Unmarshal(reply.Return, answer)
		}
	}
}

// migrated waits until a migration in or out is complete.
func (v *vm) migrated() error {
	for {
		var state struct{ Status string }
		if err := v.call("query-migrate", nil, &state); err != nil {
			return err
		}
		switch state.Status {
		case "completed":
			return nil
		case "failed", "cancelled":
			return v.said(errors.New("migration " + state.Status))
		}
		time.Sleep(time.Millisecond)
	}
}

// save writes devices and memory as one stream. QEMU's filter forbids it to fork, so the stream goes
// through a socket.
func (v *vm) save(file string) error {
	socket := filepath.Join(v.dir, "out.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := os.Chmod(socket, 0o777); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = receive(conn, file)
		}
		done <- err
	}()
	if err := v.call("migrate-set-parameters", map[string]any{"max-bandwidth": int64(8 << 30)}, nil); err != nil {
		return err
	}
	if err := v.call("migrate", map[string]any{"uri": "unix:out.sock"}, nil); err != nil {
		return err
	}
	if err := v.migrated(); err != nil {
		return err
	}
	return <-done
}

// receive writes a stream to a file that is on the disk afterwards: what is suspended outlives the host.
func receive(conn net.Conn, file string) error {
	defer conn.Close()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err = out.ReadFrom(conn); err != nil {
		return err
	}
	return out.Sync()
}

// load reads a state into a VM that waits for one.
func (v *vm) load(file string) error {
	conn, err := v.dial("in.sock")
	if err != nil {
		return err
	}
	defer conn.Close()
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.Copy(conn, in); err != nil {
		return v.said(err)
	}
	conn.Close()
	return v.migrated()
}

func (v *vm) kill() {
	if v.qmp != nil {
		v.qmp.Close()
	}
	_ = v.process.Process.Kill()
	_ = v.process.Wait()
}
