package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"space/agent/account"
)

var (
	table   *Table
	scanner *Table // without cgroups; shares the reaper
)

func TestMain(m *testing.M) {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	cgroups := testCgroups()
	accounts := account.Directory{Root: "/"}
	table = NewTable(accounts, cgroups)
	scanner = &Table{
		accounts: accounts, reaper: table.reaper, budget: &budget{},
		processes: map[string]*Process{}, starting: map[string]chan struct{}{},
	}
	code := m.Run()
	table.SignalAll(unix.SIGKILL)
	if cgroups != nil {
		for _, p := range table.List() {
			_ = table.Release(p.Spec.ID)
		}
		cgroups.Close()
	}
	os.Exit(code)
}

func testCgroups() *Cgroups {
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err != nil {
			continue
		}
		if c, err := OpenCgroups(filepath.Join(mount, fmt.Sprintf("space-test-%d", os.Getpid()))); err == nil {
			return c
		}
	}
	return nil
}

var ids struct {
	sync.Mutex
	n int
}

func id() string {
	ids.Lock()
	defer ids.Unlock()
	ids.n++
	return fmt.Sprintf("p%d", ids.n)
}

func sh(script string) Spec { return Spec{ID: id(), Argv: []string{"/bin/sh", "-c", script}} }

type outcome struct {
	stdout, stderr, pty bytes.Buffer
	exit                Exit
	seqs                []uint64
	gaps                []Event
}

func follow(t *testing.T, p *Process, after uint64) *outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out := &outcome{}
	err := p.Output(ctx, after, func(e Event) error {
		out.seqs = append(out.seqs, e.Seq)
		switch e.Kind {
		case KindStdout:
			out.stdout.Write(e.Data)
		case KindStderr:
			out.stderr.Write(e.Data)
		case KindPty:
			out.pty.Write(e.Data)
		case KindGap:
			out.gaps = append(out.gaps, e)
		case KindExit:
			out.exit = p.Exit()
		case KindStarted:
		}
		return nil
	})
	if err != nil {
		t.Fatalf("output: %v", err)
	}
	return out
}

func start(t *testing.T, in *Table, spec Spec) *Process {
	t.Helper()
	p, _, err := in.Start(spec)
	if err != nil {
		t.Fatalf("start %v: %v", spec.Argv, err)
	}
	t.Cleanup(func() { p.tree.kill() })
	return p
}

func run(t *testing.T, spec Spec) *outcome {
	t.Helper()
	return follow(t, start(t, table, spec), 0)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	until := time.Now().Add(10 * time.Second)
	for !holds() {
		if time.Now().After(until) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Behaviour 3.
func TestOutputIsExactAndNumberedWithoutHoles(t *testing.T) {
	out := run(t, sh(`printf 'no newline'; printf oops >&2; exit 7`))
	if out.stdout.String() != "no newline" || out.stderr.String() != "oops" || out.exit.Code != 7 {
		t.Fatalf("got %q %q %+v", &out.stdout, &out.stderr, out.exit)
	}
	for i, seq := range out.seqs {
		if seq != uint64(i+1) {
			t.Fatalf("seqs %v", out.seqs)
		}
	}
}

// Behaviour 5.
func TestAllBytesArriveUnchanged(t *testing.T) {
	want := make([]byte, 0, 256<<8)
	for range 256 {
		for b := range 256 {
			want = append(want, byte(b))
		}
	}
	file := filepath.Join(t.TempDir(), "bytes")
	if err := os.WriteFile(file, want, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := run(t, Spec{ID: id(), Argv: []string{"cat", file}}); !bytes.Equal(out.stdout.Bytes(), want) {
		t.Fatalf("%d bytes came, not the same", out.stdout.Len())
	}
}

// Behaviour 1.
func TestWithoutInputStdinEndsAtOnce(t *testing.T) {
	if out := run(t, Spec{ID: id(), Argv: []string{"cat"}}); out.exit.Code != 0 || out.stdout.Len() != 0 {
		t.Fatalf("got %+v", out.exit)
	}
}

// Behaviour 13.
func TestOrphanStormsStealNoExitStatus(t *testing.T) {
	storm := start(t, table, sh(`while :; do (sleep 0.01 &) ; (true &) ; done`))
	var group sync.WaitGroup
	for range 150 {
		group.Add(1)
		go func() {
			defer group.Done()
			p, _, err := table.Start(sh(`(true &); (true &); exit 3`))
			if err != nil {
				t.Error(err)
				return
			}
			_ = p.Output(context.Background(), 0, func(Event) error { return nil })
			if exit := p.Exit(); exit != (Exit{Code: 3}) {
				t.Errorf("exit %+v", exit)
			}
		}()
	}
	group.Wait()
	if err := storm.Signal(uint32(unix.SIGKILL), ScopeTree); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the storm is over", func() bool { return storm.tree.size() == 0 })
}

// Behaviour 14.
func TestDeathBySignalIsTold(t *testing.T) {
	if out := run(t, sh(`kill -TERM $$`)); out.exit != (Exit{Code: -1, Signal: 15}) {
		t.Fatalf("got %+v", out.exit)
	}
}

// Behaviour 11, with and without cgroups.
func TestTimeoutKillsTheWholeTree(t *testing.T) {
	for name, in := range map[string]*Table{"cgroup": table, "scan": scanner} {
		t.Run(name, func(t *testing.T) {
			spec := sh(`setsid sh -c 'sleep 300 & sleep 300' & (setsid sleep 300 &) ; sleep 300 & wait`)
			spec.Timeout = 300 * time.Millisecond
			p := start(t, in, spec)
			began := time.Now()
			out := follow(t, p, 0)
			if !out.exit.TimedOut || out.exit.Signal != 9 || out.exit.Code != -1 {
				t.Fatalf("got %+v", out.exit)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Fatalf("took %s", took)
			}
			eventually(t, "the tree is gone", func() bool { return p.tree.size() == 0 })
		})
	}
}

// Behaviours 2 and 12.
func TestABackgroundChildNeitherHoldsTheExitNorDiesOfIt(t *testing.T) {
	began := time.Now()
	p := start(t, table, sh(`sleep 300 & echo started`))
	out := follow(t, p, 0)
	if out.stdout.String() != "started\n" || out.exit.Code != 0 || time.Since(began) > 3*time.Second {
		t.Fatalf("got %q %+v after %s", &out.stdout, out.exit, time.Since(began))
	}
	if p.Snapshot().Tree != 1 {
		t.Fatalf("the background child is gone: %+v", p.Snapshot())
	}
	if err := p.Signal(uint32(unix.SIGKILL), ScopeTree); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is killed", func() bool { return p.tree.size() == 0 })
}

func TestKillTreeAtExit(t *testing.T) {
	spec := sh(`setsid sleep 300 & exit 5`)
	spec.KillTreeAtExit = true
	p := start(t, table, spec)
	if out := follow(t, p, 0); out.exit.Code != 5 {
		t.Fatalf("got %+v", out.exit)
	}
	eventually(t, "the rest is killed", func() bool { return p.tree.size() == 0 })
}

// Behaviour 15.
func TestATerminalHasItsSizeAndResizes(t *testing.T) {
	spec := sh(`stty size; trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.01; done`)
	spec.Pty = &Size{Cols: 101, Rows: 33}
	p := start(t, table, spec)
	var text strings.Builder
	resized := false
	err := p.Output(context.Background(), 0, func(e Event) error {
		text.Write(e.Data)
		if !resized && strings.Contains(text.String(), "ready") {
			resized = true
			return p.Resize(Size{Cols: 80, Rows: 24})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := text.String(); !strings.HasPrefix(got, "33 101\r\n") || !strings.HasSuffix(got, "24 80\r\n") || p.Exit().Code != 4 {
		t.Fatalf("got %q %+v", got, p.Exit())
	}
}

func TestControlKeysOfATerminal(t *testing.T) {
	spec := Spec{ID: id(), Argv: []string{"cat"}, Pty: &Size{Cols: 80, Rows: 24}}
	p := start(t, table, spec)
	if _, _, err := p.WriteStdin(context.Background(), 0, []byte("hey\n\x04"), false); err != nil {
		t.Fatal(err)
	}
	if out := follow(t, p, 0); out.exit.Code != 0 || !strings.Contains(out.pty.String(), "hey\r\nhey\r\n") {
		t.Fatalf("got %q %+v", &out.pty, out.exit)
	}
	spec.ID = id()
	p = start(t, table, spec)
	if _, _, err := p.WriteStdin(context.Background(), 0, []byte("\x03"), false); err != nil {
		t.Fatal(err)
	}
	if out := follow(t, p, 0); out.exit.Signal != 2 {
		t.Fatalf("got %+v", out.exit)
	}
}

func TestStdinPositions(t *testing.T) {
	p := start(t, table, Spec{ID: id(), Argv: []string{"cat"}, Stdin: true})
	ctx := context.Background()
	write := func(offset uint64, data string, eof bool, want uint64) {
		t.Helper()
		next, _, err := p.WriteStdin(ctx, offset, []byte(data), eof)
		if err != nil || next != want {
			t.Fatalf("next %d, %v", next, err)
		}
	}
	write(0, "abc", false, 3)
	write(0, "abc", false, 3)
	write(1, "bcde", false, 5)
	if _, _, err := p.WriteStdin(ctx, 6, []byte("x"), false); status.Code(err) != codes.Aborted {
		t.Fatalf("got %v", err)
	}
	write(5, "", true, 5)
	write(5, "", true, 5)
	if out := follow(t, p, 0); out.stdout.String() != "abcde" {
		t.Fatalf("got %q", &out.stdout)
	}
}

// Behaviour 6, the agent's part.
func TestWithoutAReaderTheOldestOutputMakesWayForAGap(t *testing.T) {
	const total = 12 << 20
	p := start(t, table, sh(fmt.Sprintf(`head -c %d /dev/zero; echo end`, total)))
	eventually(t, "it ends without a reader", func() bool { return !p.Snapshot().Running })
	out := follow(t, p, 0)
	if len(out.gaps) != 1 || out.gaps[0].FirstSeq != 1 || out.seqs[0] != out.gaps[0].Seq {
		t.Fatalf("gaps %+v", out.gaps)
	}
	if got := out.gaps[0].Missing + uint64(out.stdout.Len()); got != total+4 {
		t.Fatalf("%d missing and %d here", out.gaps[0].Missing, out.stdout.Len())
	}
	if out.stdout.Len() < 3<<20 || !bytes.HasSuffix(out.stdout.Bytes(), []byte("end\n")) {
		t.Fatalf("%d bytes kept", out.stdout.Len())
	}
	again := follow(t, p, out.seqs[len(out.seqs)-3])
	if len(again.seqs) != 2 {
		t.Fatalf("resumed with %v", again.seqs)
	}
}

// Behaviour 7.
func TestASlowReaderSlowsTheProcessDownAndLosesNothing(t *testing.T) {
	const total = 24 << 20
	p := start(t, table, sh(fmt.Sprintf(`head -c %d /dev/zero`, total)))
	got, first := 0, true
	err := p.Output(context.Background(), 0, func(e Event) error {
		if e.Kind == KindGap {
			t.Errorf("gap %+v", e)
		}
		got += len(e.Data)
		if first && got > 0 {
			first = false
			time.Sleep(300 * time.Millisecond)
			if used := p.log.size; used > maxLogBytes {
				t.Errorf("the log grew to %d", used)
			}
		}
		return nil
	})
	if err != nil || got != total {
		t.Fatalf("%d bytes, %v", got, err)
	}
}

// Behaviour 17.
func TestWhatIsMissingIsNamedBeforeAnythingStarts(t *testing.T) {
	for reason, spec := range map[string]Spec{
		"workdir_not_found":      {Argv: []string{"true"}, Cwd: "/no/such"},
		"user_not_found":         {Argv: []string{"true"}, User: "nobody-here"},
		"command_not_found":      {Argv: []string{"no-such-command"}},
		"permission_denied":      {Argv: []string{"/etc/passwd"}},
		"command_not_executable": {Argv: []string{"./junk"}},
		"invalid_argument":       {},
	} {
		dir := t.TempDir()
		spec.ID = id()
		if reason == "command_not_executable" {
			spec.Cwd = dir
			if err := os.WriteFile(filepath.Join(dir, "junk"), []byte{0, 1, 2}, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := table.Start(spec)
		if err == nil || !strings.HasPrefix(status.Convert(err).Message(), reason+": ") {
			t.Errorf("%s: got %v", reason, err)
		}
		if _, err := table.Get(spec.ID); err == nil {
			t.Errorf("%s: something was started", reason)
		}
	}
}

// Behaviour 16.
func TestEnvironmentAndUser(t *testing.T) {
	table.SetDefaults(Defaults{Env: map[string]string{"A": "sandbox", "B": "it's \"quoted\" $HOME"}})
	defer table.SetDefaults(Defaults{})
	spec := Spec{ID: id(), Argv: []string{"sh", "-c", `echo "$A|$B|$USER|$HOME|$(id -u)|$(umask)"`}, Env: map[string]string{"A": "call"}, User: "nobody", Cwd: "/"}
	out := run(t, spec)
	if got := out.stdout.String(); !strings.HasPrefix(got, `call|it's "quoted" $HOME|nobody|/nonexistent|65534|`) {
		t.Fatalf("got %q, %q", got, &out.stderr)
	}
}

// Behaviour 10.
func TestStartingAnIDTwiceStartsOneProcess(t *testing.T) {
	spec := sh(`echo once >> ` + filepath.Join(t.TempDir(), "count"))
	var group sync.WaitGroup
	pids := make([]int, 8)
	for i := range pids {
		group.Add(1)
		go func() {
			defer group.Done()
			if p, _, err := table.Start(spec); err == nil {
				pids[i] = p.Pid
			}
		}()
	}
	group.Wait()
	for _, pid := range pids {
		if pid != pids[0] || pid == 0 {
			t.Fatalf("pids %v", pids)
		}
	}
}

// Behaviour 18.
func TestManyShortCommandsLeakNothing(t *testing.T) {
	open := func() int {
		entries, _ := os.ReadDir("/proc/self/fd")
		return len(entries)
	}
	run(t, sh("true"))
	before := open()
	for range 200 {
		spec := Spec{ID: id(), Argv: []string{"true"}, Stdin: true}
		follow(t, start(t, table, spec), 0)
		if err := table.Release(spec.ID); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "descriptors are given back", func() bool { return open() <= before+3 })
}

// A full table forgets the process that ended first, and never one that runs.
func TestAFullTableForgetsTheFirstThatEnded(t *testing.T) {
	full := &Table{
		accounts: account.Directory{Root: "/"}, reaper: table.reaper, budget: &budget{},
		processes: map[string]*Process{}, starting: map[string]chan struct{}{},
	}
	add := func(id string) {
		full.processes[id] = &Process{Spec: Spec{ID: id}, log: newLog(full.budget), tree: &scanned{marker: []byte(id + "\x00")}}
	}
	for i := range maxProcesses {
		add(fmt.Sprintf("old%d", i))
	}
	wantNoRoom := func() {
		t.Helper()
		_, _, err := full.Start(sh("true"))
		if err == nil || !strings.Contains(err.Error(), "too_many_processes") {
			t.Fatalf("want too_many_processes, got %v", err)
		}
	}
	wantNoRoom()
	full.endedIDs = []string{"old7", "old3"}
	for _, gone := range []string{"old7", "old3"} {
		p := start(t, full, sh("sleep 60"))
		if _, err := full.Get(gone); err == nil {
			t.Fatalf("%s is still there", gone)
		}
		if len(full.processes) != maxProcesses || full.processes[p.Spec.ID] != p {
			t.Fatalf("%d processes are known", len(full.processes))
		}
	}
	wantNoRoom()
}
