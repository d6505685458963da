package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const (
	parallelStreams = 200
	// What commands.run("echo hi") of the SDKs runs.
	sdkShell, sdkFlags, sdkCommand = "/bin/bash", "-lc", "echo hi"
)

// sdk is E2B's JavaScript SDK in a process of its own, which does what it is told a line at a time.
type sdk struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	version string
}

type sdkAnswer struct {
	Version, Error   string
	Millis, Up, Down float64
}

func (r *run) openSDK(d *daemon, script string) (*sdk, error) {
	folder := filepath.Join(r.scratch, "sdk")
	install := exec.Command("npm", "install", "--silent", "--no-save", "--prefix", folder, "e2b@latest")
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm install e2b: %w: %s", err, out)
	}
	process := exec.Command("node", script)
	process.Env = append(os.Environ(), "SDK="+filepath.Join(folder, "node_modules", "e2b"),
		"E2B_API_KEY="+d.key, "E2B_API_URL="+d.e2b, "E2B_SANDBOX_URL="+d.e2b)
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	s := &sdk{process: process, in: in, out: bufio.NewScanner(out)}
	hello, err := s.answer()
	s.version = hello.Version
	return s, err
}

func (s *sdk) answer() (sdkAnswer, error) {
	var a sdkAnswer
	if !s.out.Scan() {
		return a, errors.New("the SDK's process ended")
	}
	if err := json.Unmarshal(s.out.Bytes(), &a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

func (s *sdk) ask(words string) (sdkAnswer, error) {
	if _, err := fmt.Fprintln(s.in, words); err != nil {
		return sdkAnswer{}, err
	}
	return s.answer()
}

func (s *sdk) close() {
	_ = s.in.Close()
	_ = s.process.Wait()
}

// measureE2B holds E2B's SDK against the native API, and what the wrapper carries.
func measureE2B(r *run) error {
	d, err := startDaemon(r.space, r.dataDir)
	if err != nil {
		return err
	}
	defer d.stop()
	s, err := r.openSDK(d, filepath.Join(filepath.Dir(r.space), "bench", "e2b.mjs"))
	if err != nil {
		return err
	}
	defer s.close()
	r.note("E2B's SDK: npm e2b %s, on HTTP/1.1", s.version)
	product := func() (time.Duration, error) {
		a, err := s.ask("turn")
		return time.Duration(a.Millis * float64(time.Millisecond)), err
	}
	if _, _, err := turns(2, product, d.createToExit); err != nil {
		return err
	}
	ps, fs, err := turns(r.rounds, product, d.createToExit)
	if err != nil {
		return err
	}
	r.ratioAtMost("e2b", "SDK: create → commands.run, against the native API", fs, ps, 1.3)
	if err := measureE2BFiles(r, d, s); err != nil {
		return err
	}
	return measureE2BStreams(r, d)
}

// createToExit gives the time from nothing to the end of a first command, over the native API.
func (c *client) createToExit() (time.Duration, error) {
	began := time.Now()
	sandbox, err := c.create()
	if err != nil {
		return 0, err
	}
	_, err = c.first(sandbox, sdkShell, sdkFlags, sdkCommand)
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, c.remove(sandbox)
}

func measureE2BFiles(r *run, d *daemon, s *sdk) error {
	const mib = 100
	// A small one first: what is made once does not count.
	if _, err := s.ask("open 4"); err != nil {
		return err
	}
	before, err := d.heap()
	if err != nil {
		return err
	}
	stop, most := make(chan struct{}), make(chan float64)
	go func() {
		top := before
		for {
			select {
			case <-stop:
				most <- top
				return
			case <-time.After(200 * time.Millisecond):
				if now, err := d.heap(); err == nil {
					top = max(top, now)
				}
			}
		}
	}()
	a, err := s.ask(fmt.Sprintf("open %d", mib))
	close(stop)
	grown := <-most - before
	if err != nil {
		return err
	}
	r.add("e2b", fmt.Sprintf("SDK: files.write, files.read of %d MiB: growth of live heap", mib), "",
		fmt.Sprintf("%.1f MiB", grown), fmt.Sprintf("of %.0f MiB", before), "< 64 MiB", grown < 64)
	r.note("SDK: files.write %.0f MB/s, files.read %.0f MB/s, with a full collection every fifth of a second",
		(mib<<20)/1e3/a.Up, (mib<<20)/1e3/a.Down)
	return nil
}

// measureE2BStreams opens many processes' streams at once, each answering what it is sent.
func measureE2BStreams(r *run, d *daemon) error {
	box, err := d.e2bCreate()
	if err != nil {
		return err
	}
	defer func() { _ = d.remove(box.SandboxID) }()
	began := time.Now()
	var all, started sync.WaitGroup
	started.Add(parallelStreams)
	failures := make(chan error, parallelStreams)
	for i := range parallelStreams {
		all.Add(1)
		go func() {
			defer all.Done()
			var once sync.Once
			ready := func() { once.Do(started.Done) }
			defer ready()
			if err := d.echo(box, fmt.Sprintf("stream %d\n", i), func() { ready(); started.Wait() }); err != nil {
				failures <- err
			}
		}()
	}
	all.Wait()
	close(failures)
	bad := len(failures)
	r.add("e2b", fmt.Sprintf("%d parallel RPC streams, each answered", parallelStreams), "", millis(time.Since(began)),
		fmt.Sprintf("%d whole", parallelStreams-bad), "all", bad == 0)
	if err, some := <-failures; some {
		r.note("streams: %v", err)
	}
	return nil
}

type e2bSandbox struct {
	SandboxID       string `json:"sandboxID"`
	EnvdAccessToken string `json:"envdAccessToken"`
}

func (d *daemon) e2bCreate() (e2bSandbox, error) {
	var box e2bSandbox
	request, err := http.NewRequest("POST", d.e2b+"/v2/sandboxes", bytes.NewReader([]byte(`{"templateID":"base"}`)))
	if err != nil {
		return box, err
	}
	request.Header.Set("X-API-KEY", d.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := d.http.Do(request)
	if err != nil {
		return box, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return box, fmt.Errorf("create: %s: %s", response.Status, text)
	}
	return box, json.NewDecoder(response.Body).Decode(&box)
}

func (d *daemon) rpc(box e2bSandbox, method, kind string, body []byte) (*http.Response, error) {
	request, err := http.NewRequest("POST", d.e2b+"/process.Process/"+method, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Connect-Protocol-Version", "1")
	request.Header.Set("E2b-Sandbox-Id", box.SandboxID)
	request.Header.Set("E2b-Sandbox-Port", "49983")
	request.Header.Set("X-Access-Token", box.EnvdAccessToken)
	response, err := d.http.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body.Close()
		err = fmt.Errorf("%s: %s", method, response.Status)
	}
	return response, err
}

// echo starts cat, calls running once it runs, sends it a line and reads that and the end.
func (d *daemon) echo(box e2bSandbox, line string, running func()) error {
	message := []byte(`{"process":{"cmd":"/bin/cat"},"stdin":true}`)
	envelope := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	response, err := d.rpc(box, "Start", "application/connect+json", append(envelope, message...))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	pid := 0
	var got []byte
	for {
		flags, body, err := readEnvelope(reader)
		if err != nil {
			return err
		}
		if flags == 2 {
			if string(body) != "{}" || string(got) != line {
				return fmt.Errorf("the stream ended with %s after %q", body, got)
			}
			return nil
		}
		var m struct {
			Event struct {
				Start struct{ Pid int }
				Data  struct{ Stdout []byte }
			}
		}
		if err := json.Unmarshal(body, &m); err != nil {
			return err
		}
		got = append(got, m.Event.Data.Stdout...)
		if pid == 0 {
			pid = m.Event.Start.Pid
			running()
			if err := d.feed(box, pid, line); err != nil {
				return err
			}
		}
	}
}

func (d *daemon) feed(box e2bSandbox, pid int, line string) error {
	who := map[string]any{"pid": pid}
	input, err := json.Marshal(map[string]any{"process": who, "input": map[string]any{"stdin": []byte(line)}})
	if err != nil {
		return err
	}
	end, err := json.Marshal(map[string]any{"process": who})
	if err != nil {
		return err
	}
	for _, call := range []struct {
		method string
		body   []byte
	}{{"SendInput", input}, {"CloseStdin", end}} {
		response, err := d.rpc(box, call.method, "application/json", call.body)
		if err != nil {
			return err
		}
		response.Body.Close()
	}
	return nil
}

func readEnvelope(reader *bufio.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(reader, head[:]); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err := io.ReadFull(reader, body)
	return head[0], body, err
}
