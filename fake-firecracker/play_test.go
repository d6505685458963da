package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The test binary plays the fake itself when it is started with this.
const playVariable = "FAKE_FIRECRACKER_PLAY"

func TestMain(m *testing.M) {
	role := os.Getenv(playVariable)
	// In a jail there is no environment, but a name.
	if filepath.Base(os.Args[0]) == "firecracker" {
		role = "firecracker"
	}
	switch role {
	case "jailer":
		runJailer(os.Args[1:])
	case "firecracker":
		main()
	default:
		os.Exit(m.Run())
	}
}

// played is a running fake.
type played struct {
	t       *testing.T
	dir     string
	command *exec.Cmd
	client  *http.Client
	exit    chan int
	said    *bytes.Buffer
}

func play(t *testing.T, settings string, args ...string) *played {
	t.Helper()
	return playIn(t, t.TempDir(), settings, args...)
}

func playIn(t *testing.T, dir, settings string, args ...string) *played {
	t.Helper()
	p := start(t, dir, settings, append([]string{"--api-sock", "api.sock"}, args...)...)
	p.await(func() bool {
		conn, err := net.Dial("unix", p.path("api.sock"))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return p
}

func start(t *testing.T, dir, settings string, args ...string) *played {
	t.Helper()
	p := &played{t: t, dir: dir, exit: make(chan int, 1), said: &bytes.Buffer{}}
	p.command = exec.Command(os.Args[0], args...)
	p.command.Dir = dir
	p.command.Env = append(os.Environ(), playVariable+"=firecracker")
	if settings != "" {
		p.set(settings)
	}
	p.command.Stdout, p.command.Stderr = p.said, p.said
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait()
		p.exit <- p.command.ProcessState.ExitCode()
	}()
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	p.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxConnsPerHost: 1,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", p.path("api.sock")) }}}
	return p
}

func (p *played) path(name string) string { return filepath.Join(p.dir, name) }

func (p *played) set(settings string) { write(p.t, p.path(settingsFile), settings) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (p *played) await(done func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("not in time; it said: %s", p.said)
		}
	}
}

func (p *played) call(method, path, body string) (int, string) {
	p.t.Helper()
	status, text, err := p.try(method, path, body)
	if err != nil {
		p.t.Fatalf("%s %s: %v; it said: %s", method, path, err, p.said)
	}
	return status, text
}

func (p *played) try(method, path, body string) (int, string, error) {
	request, err := http.NewRequest(method, "http://fc"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

func (p *played) good(method, path, body string) string {
	p.t.Helper()
	status, text := p.call(method, path, body)
	if status >= 300 {
		p.t.Fatalf("%s %s %s: %d %s", method, path, body, status, text)
	}
	return text
}

func (p *played) refused(method, path, body, why string) {
	p.t.Helper()
	status, text := p.call(method, path, body)
	var fault struct {
		Message string `json:"fault_message"`
	}
	if err := json.Unmarshal([]byte(text), &fault); status != 400 || err != nil || !strings.Contains(fault.Message, why) {
		p.t.Fatalf("%s %s %s: %d %s, and not: %s", method, path, body, status, text, why)
	}
}

func (p *played) exited(code int) {
	p.t.Helper()
	select {
	case got := <-p.exit:
		if got != code {
			p.t.Fatalf("exit %d, not %d; it said: %s", got, code, p.said)
		}
	case <-time.After(20 * time.Second):
		p.t.Fatal("it doesn't end")
	}
}

// boot configures a machine with a disk and a vsock, and starts it.
func (p *played) boot() {
	p.t.Helper()
	write(p.t, p.path("vmlinux"), "\x7fELF and no more")
	write(p.t, p.path("disk"), strings.Repeat("x", 4096))
	p.good("PUT", "/machine-config", `{"vcpu_count":1,"mem_size_mib":16}`)
	p.good("PUT", "/boot-source", `{"kernel_image_path":"vmlinux","boot_args":"quiet space.link=vsock:52"}`)
	p.good("PUT", "/drives/disk", `{"drive_id":"disk","is_root_device":false,"is_read_only":false,"path_on_host":"disk"}`)
	p.good("PUT", "/vsock", `{"guest_cid":3,"uds_path":"v.sock"}`)
	p.good("PUT", "/entropy", `{}`)
	p.good("PUT", "/actions", `{"action_type":"InstanceStart"}`)
}

func (p *played) dial(command string) (net.Conn, string) {
	p.t.Helper()
	conn, err := net.Dial("unix", p.path("v.sock"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, command); err != nil {
		p.t.Fatal(err)
	}
	line := ""
	for !strings.HasSuffix(line, "\n") {
		one := make([]byte, 1)
		if n, _ := conn.Read(one); n == 0 {
			break
		}
		line += string(one)
	}
	return conn, line
}
