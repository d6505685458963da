package main

import (
	"debug/elf"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// jailed starts the fake in a jail; its pid is that of the pid file, or of the jailer itself.
func jailed(t *testing.T, base string, more ...string) (root string, pid int) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "firecracker")
	if err := copyProgram(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	write(t, program+".json", `{"version":"1.16.1"}`)
	args := append([]string{"--id", "vm-1", "--exec-file", program, "--uid", "61234", "--gid", "61235",
		"--chroot-base-dir", base}, more...)
	command := exec.Command(os.Args[0], append(args, "--", "--log-path", "/log")...)
	command.Env = append(os.Environ(), playVariable+"=jailer")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(base, "firecracker", "vm-1", "root")
	if contains(more, "--new-pid-ns") {
		if err := command.Wait(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(root, "firecracker.pid"))
		if err != nil {
			t.Fatal(err)
		}
		pid, _ = strconv.Atoi(string(text))
	} else {
		pid = command.Process.Pid
		go func() { _ = command.Wait() }()
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return root, pid
}

func TestAJail(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a jail")
	}
	if program, err := elf.Open(os.Args[0]); err != nil || program.Section(".interp") != nil {
		t.Skip("the test binary needs libraries, which a jail doesn't have: CGO_ENABLED=0")
	}
	for _, more := range [][]string{nil, {"--new-pid-ns"}, {"--new-pid-ns", "--daemonize", "--resource-limit", "fsize=100000000"}} {
		base := t.TempDir()
		root, pid := jailed(t, base, more...)
		socket := filepath.Join(root, "run", "firecracker.socket")
		waitFor(t, func() bool {
			conn, err := net.Dial("unix", socket)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil || !strings.Contains(string(status), "Uid:\t61234\t61234\t61234") || !strings.Contains(string(status), "Gid:\t61235") {
			t.Errorf("%v: %v\n%s", more, err, status)
		}
		if inside := contains(more, "--new-pid-ns"); strings.Contains(string(status), fmt.Sprintf("NSpid:\t%d\t1\n", pid)) != inside {
			t.Errorf("%v: pid namespace\n%s", more, status)
		}
		for _, path := range []string{"dev/kvm", "dev/net/tun", "dev/urandom", "log", "firecracker"} {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%v: %v", more, err)
			}
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
		waitFor(t, func() bool { return syscall.Kill(pid, 0) != nil })
		if err := os.RemoveAll(filepath.Dir(root)); err != nil {
			t.Error(err)
		}
	}
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not in time")
		}
	}
}
