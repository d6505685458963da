package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// settings say how the fake is to behave. They are read again for every call, so that a test can change
// them while the fake runs. Where they come from, the later over the earlier: `<program>.json` (which the
// jailer copies into the jail), `fake-firecracker.json` in the working directory, and the environment
// variable FAKE_FIRECRACKER, which holds JSON or names a file of it.
type settings struct {
	// Version is that of Firecracker that is played.
	Version string `json:"version"`
	// SnapshotVersion is that of its snapshot format.
	SnapshotVersion string `json:"snapshot_version"`
	// Guest is "none" or "qemu".
	Guest string `json:"guest"`
	// Qemu is the program.
	Qemu string `json:"qemu"`
	// Kernel is booted by QEMU in the place of the boot source's, such as the bzImage it came from.
	Kernel string `json:"kernel"`
	// Port is the vsock port on which the guest's agent listens, when its command line doesn't say.
	Port uint32 `json:"port"`
	// Ports are what listens in a guest that is "none": "echo", "sink", "silent" or "banner:TEXT".
	Ports map[string]string `json:"ports"`
	// ReadyMillis is how long after its start a guest that is "none" listens.
	ReadyMillis int `json:"ready_ms"`
	// RebootMillis is how long after its start a guest that is "none" reboots; 0 is never.
	RebootMillis int `json:"reboot_ms"`
	// SnapshotBytesPerSecond slows the writing of memory; 0 doesn't.
	SnapshotBytesPerSecond int64 `json:"snapshot_bytes_per_second"`
	// Faults are what goes wrong.
	Faults []fault `json:"faults"`

	faults faults
}

// fault is one thing that goes wrong, or slowly.
type fault struct {
	// Call is "start", "CONNECT", or a method and a path such as "PUT /drives", whose ids may be left out.
	Call string `json:"call"`
	// Nth is which of the calls it meets, from 1 on; 0 is every one.
	Nth int `json:"nth"`
	// After is true when it strikes after the call was done and before it is answered.
	After bool `json:"after"`

	DelayMillis int    `json:"delay_ms"`
	Hang        bool   `json:"hang"`
	Drop        bool   `json:"drop"`
	Exit        *int   `json:"exit"`
	Signal      int    `json:"signal"`
	Status      int    `json:"status"`
	Message     string `json:"message"`
}

type faults []fault

const (
	settingsVariable = "FAKE_FIRECRACKER"
	settingsFile     = "fake-firecracker.json"
)

func readSettings() settings {
	s := settings{
		Version: "1.16.1", SnapshotVersion: "10.0.0", Guest: "none", Qemu: "qemu-system-x86_64",
		Port: 52, Ports: map[string]string{"52": "echo"},
	}
	if program, err := os.Executable(); err == nil {
		s.mergeFile(program + ".json")
	}
	s.mergeFile(settingsFile)
	if given := os.Getenv(settingsVariable); strings.HasPrefix(strings.TrimSpace(given), "{") {
		s.merge([]byte(given), settingsVariable)
	} else if given != "" {
		s.mergeFile(given)
	}
	s.faults = s.Faults
	return s
}

func (s *settings) mergeFile(path string) {
	if text, err := os.ReadFile(path); err == nil {
		s.merge(text, path)
	}
}

// merge takes what is given; a mistake in it is a mistake in a test, which then should not go on.
func (s *settings) merge(text []byte, from string) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(s); err != nil {
		fmt.Fprintf(os.Stderr, "fake-firecracker: %s: %v\n", from, err)
		os.Exit(exitBadConfig)
	}
}

// qemuProgram finds QEMU where no PATH is, as in a jail.
func (s *settings) qemuProgram() string {
	if strings.Contains(s.Qemu, "/") {
		return s.Qemu
	}
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin", "/usr/local/bin") {
		path := filepath.Join(dir, s.Qemu)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return s.Qemu
}

// atLeast compares versions such as 1.16.1.
func (s *settings) atLeast(major, minor int) bool {
	var haveMajor, haveMinor int
	_, _ = fmt.Sscanf(s.Version, "%d.%d", &haveMajor, &haveMinor)
	return haveMajor > major || haveMajor == major && haveMinor >= minor
}

var callCounts = struct {
	sync.Mutex
	byFault map[string]int
}{byFault: map[string]int{}}

// countCall is called once per call, before it is looked whether a fault meets it.
func countCall(call string) {
	callCounts.Lock()
	defer callCounts.Unlock()
	for prefix := call; prefix != ""; {
		callCounts.byFault[prefix]++
		cut := strings.LastIndex(prefix, "/")
		if cut < 0 || strings.HasSuffix(prefix[:cut], " ") {
			return
		}
		prefix = prefix[:cut]
	}
}

func (f fault) meets(call string, after bool) bool {
	if f.After != after || f.Call != call && !strings.HasPrefix(call, f.Call+"/") {
		return false
	}
	callCounts.Lock()
	defer callCounts.Unlock()
	return f.Nth == 0 || callCounts.byFault[f.Call] == f.Nth
}

// struck is what a fault does to the answer of the call that it met.
type struck struct {
	drop   bool
	answer *answer
}

// strike lets happen what is wanted for this call; delays and ends happen in it.
func (all faults) strike(call string, after bool, log *logger) struck {
	var result struck
	for _, f := range all {
		if !f.meets(call, after) {
			continue
		}
		time.Sleep(time.Duration(f.DelayMillis) * time.Millisecond)
		if f.Signal != 0 {
			_ = syscall.Kill(os.Getpid(), syscall.Signal(f.Signal))
			time.Sleep(time.Second)
		}
		if f.Exit != nil {
			log.write("ERROR", fmt.Sprintf("Firecracker exiting with error. exit_code=%d", *f.Exit))
			os.Exit(*f.Exit)
		}
		if f.Hang {
			select {}
		}
		result.drop = result.drop || f.Drop
		if f.Status != 0 {
			result.answer = &answer{status: f.Status, fault: f.Message}
		}
	}
	return result
}
