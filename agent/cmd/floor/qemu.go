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
	"strconv"
	"time"
)

// setup is what every VM of a run has in common.
type setup struct {
	qemu, kernel, initrd, root, disk string
	memoryMiB                        int
}

const kernelArguments = "console=ttyS0 quiet panic=-1 reboot=t no_timer_check random.trust_cpu=on" +
	" tsc=reliable space.link=virtio:space.agent"

// machine is the same as that of package dev.space.vmm.qemu: what is compared must be alike.
func (s setup) machine(memory string, shared bool) []string {
	share := "off"
	if shared {
		share = "on"
	}
	return []string{
		"-M", "q35,smm=off,sata=off,usb=off,vmport=off,dump-guest-core=off,memory-backend=mem",
		"-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "1", "-m", strconv.Itoa(s.memoryMiB) + "M",
		"-object", fmt.Sprintf("memory-backend-file,id=mem,size=%dM,share=%s,mem-path=%s", s.memoryMiB, share, memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-no-shutdown",
		"-global", "migration.send-configuration=off", "-global", "migration.store-global-state=off",
		"-blockdev", "driver=raw,node-name=vda,read-only=on,file.driver=file,file.locking=off,file.filename=" + s.root,
		"-device", "virtio-blk-pci,drive=vda",
		"-blockdev", "driver=raw,node-name=vdb,cache.no-flush=on,discard=unmap,file.driver=file,file.locking=off,file.discard=unmap,file.filename=disk.img",
		"-device", "virtio-blk-pci,drive=vdb",
		"-device", "virtio-serial-pci,max_ports=2",
		"-chardev", "socket,id=agent,server=on,wait=off,path=agent.sock",
		"-device", "virtserialport,chardev=agent,name=space.agent",
		"-device", "virtio-rng-pci",
		"-serial", "file:console.log",
		"-chardev", "socket,id=qmp,server=on,wait=off,path=qmp.sock", "-mon", "chardev=qmp,mode=control",
		"-sandbox", "on,obsolete=deny,spawn=deny,resourcecontrol=deny,elevateprivileges=deny",
	}
}

// vm is a running QEMU with its own directory.
type vm struct {
	dir     string
	process *exec.Cmd
	qmp     net.Conn
	answers *bufio.Reader
}

func (s setup) start(dir string, args []string) (*vm, error) {
	log, err := os.Create(filepath.Join(dir, "qemu.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	process := exec.Command(s.qemu, args...)
	process.Dir, process.Stdout, process.Stderr = dir, log, log
	if err := process.Start(); err != nil {
		return nil, err
	}
	v := &vm{dir: dir, process: process}
	if v.qmp, err = v.dial("qmp.sock"); err != nil {
		v.kill()
		return nil, err
	}
	v.answers = bufio.NewReader(v.qmp)
	if _, err := v.answers.ReadBytes('\n'); err != nil {
		v.kill()
		return nil, err
	}
	if err := v.call("qmp_capabilities", nil, nil); err != nil {
		v.kill()
		return nil, err
	}
	return v, nil
}

const startLimit = 60 * time.Second

// dial connects to a socket as soon as QEMU has made it.
func (v *vm) dial(name string) (net.Conn, error) {
	until := time.Now().Add(startLimit)
	for {
		conn, err := net.Dial("unix", filepath.Join(v.dir, name))
		if err == nil {
			return conn, nil
		}
		if time.Now().After(until) {
			log, _ := os.ReadFile(filepath.Join(v.dir, "qemu.log"))
			return nil, fmt.Errorf("%w; QEMU says: %s", err, log)
		}
		time.Sleep(time.Millisecond)
	}
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
			log, _ := os.ReadFile(filepath.Join(v.dir, "qemu.log"))
			return fmt.Errorf("%s: %w; QEMU says: %s", command, err, log)
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
			return errors.New("migration " + state.Status)
		}
		time.Sleep(time.Millisecond)
	}
}

func (v *vm) ignoreShared(on bool) error {
	return v.call("migrate-set-capabilities", map[string]any{
		"capabilities": []map[string]any{{"capability": "x-ignore-shared", "state": on}},
	}, nil)
}

// save writes the state, with the memory when it isn't a shared file. The sandbox of QEMU forbids it to
// fork, so the state goes through a socket.
func (v *vm) save(file string, withMemory bool) error {
	if err := v.ignoreShared(!withMemory); err != nil {
		return err
	}
	socket := filepath.Join(v.dir, "out.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	defer listener.Close()
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

func receive(conn net.Conn, file string) error {
	defer conn.Close()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = out.ReadFrom(conn)
	return err
}

// load reads a state into a VM that was started with -incoming defer.
func (v *vm) load(file string, withMemory bool) error {
	if err := v.ignoreShared(!withMemory); err != nil {
		return err
	}
	listener := "unix:in.sock"
	if err := v.call("migrate-incoming", map[string]any{"uri": listener}, nil); err != nil {
		return err
	}
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
		return err
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
