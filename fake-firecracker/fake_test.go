package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestVersions(t *testing.T) {
	for option, want := range map[string]string{"--version": "Firecracker v1.16.1\n\n", "--snapshot-version": "v10.0.0\n"} {
		p := start(t, t.TempDir(), "", option)
		p.exited(0)
		if p.said.String() != want {
			t.Errorf("%s: %q", option, p.said)
		}
	}
	start(t, t.TempDir(), "", "--nonsense").exited(exitBadArguments)
	start(t, t.TempDir(), "", "--level", "Loud").exited(exitBadConfig)
}

func TestBodiesAreTakenStrictly(t *testing.T) {
	p := play(t, "")
	for _, c := range [][3]string{
		{"/machine-config", `{"vcpu_count":1,"mem_size_mib":16,"colour":1}`, "unknown field `colour`, expected one of `vcpu_count`"},
		{"/machine-config", `{"vcpu_count":1,"Mem_Size_Mib":16}`, "unknown field `Mem_Size_Mib`"},
		{"/machine-config", `{"vcpu_count":1}`, "missing field `mem_size_mib` at line 1"},
		{"/machine-config", `{"vcpu_count":"1","mem_size_mib":16}`, "invalid type: string \"1\", expected u8"},
		{"/machine-config", `{"vcpu_count":300,"mem_size_mib":16}`, "expected u8"},
		{"/machine-config", `{"vcpu_count":1,"vcpu_count":1,"mem_size_mib":16}`, "duplicate field `vcpu_count`"},
		{"/machine-config", `{"vcpu_count":33,"mem_size_mib":16}`, "number of vCPUs"},
		{"/machine-config", `{"vcpu_count":1,"mem_size_mib":16,"huge_pages":"1G"}`, "unknown variant `1G`"},
		{"/machine-config", `{} {}`, "missing field"},
		{"/drives/a-b", `{}`, "alphanumeric"},
		{"/drives/", `{}`, "ID cannot be empty"},
		{"/drives/a", `{"drive_id":"b","is_root_device":false}`, "does not match"},
		{"/drives/a", `{"drive_id":"a","is_root_device":false,"path_on_host":"none","is_read_only":true}`, "No such file or directory (os error 2)"},
		{"/drives/a", `{"drive_id":"a","is_root_device":false,"rate_limiter":{"ops":{"size":1}}}`, "missing field `refill_time`"},
		{"/boot-source", `{"kernel_image_path":"none"}`, "The kernel file cannot be opened"},
		{"/vsock", `{"guest_cid":2,"uds_path":"v.sock"}`, "CID"},
		{"/nowhere", `{}`, "Invalid request method and/or path: PUT nowhere."},
		{"/actions", ``, "Empty PUT request."},
		{"/actions", `{"action_type":"Dance"}`, "unknown variant `Dance`"},
		{"/snapshot/load", `{"snapshot_path":"s"}`, "missing field: either `mem_backend` or `mem_file_path`"},
	} {
		p.refused("PUT", c[0], c[1], c[2])
	}
	p.refused("GET", "/version", "{}", "GET request cannot have a body.")
	if status, text := p.call("PUT", "/mmds", `{"x":"`+strings.Repeat("y", payloadBytesMax)+`"}`); status != 413 {
		t.Errorf("%d %s", status, text)
	}
}

func TestWhatComesOnlyBeforeOrAfterTheStart(t *testing.T) {
	p := play(t, "")
	const before, after = "not supported before starting", "not supported after starting"
	p.refused("PATCH", "/vm", `{"state":"Paused"}`, before)
	p.refused("PUT", "/snapshot/create", `{"snapshot_path":"s","mem_file_path":"m"}`, before)
	p.refused("PUT", "/actions", `{"action_type":"FlushMetrics"}`, before)
	p.refused("PUT", "/actions", `{"action_type":"InstanceStart"}`, "without kernel configuration")
	if text := p.good("GET", "/", ""); !strings.Contains(text, `"state":"Not started"`) {
		t.Error(text)
	}
	p.boot()
	p.refused("PUT", "/machine-config", `{"vcpu_count":1,"mem_size_mib":16}`, after)
	p.refused("PUT", "/actions", `{"action_type":"InstanceStart"}`, after)
	p.refused("PUT", "/snapshot/load", `{"snapshot_path":"s","mem_file_path":"m"}`, after)
	p.refused("PUT", "/snapshot/create", `{"snapshot_path":"s","mem_file_path":"m"}`, "save/restore unavailable while running")
	for range 2 {
		p.good("PATCH", "/vm", `{"state":"Paused"}`)
	}
	if text := p.good("GET", "/", ""); !strings.Contains(text, `"state":"Paused"`) {
		t.Error(text)
	}
	for range 2 {
		p.good("PATCH", "/vm", `{"state":"Resumed"}`)
	}
	p.good("PATCH", "/drives/disk", `{"drive_id":"disk","rate_limiter":{"ops":{"size":100,"refill_time":100}}}`)
	p.refused("PATCH", "/drives/other", `{"drive_id":"other"}`, "not found")
}

func TestABzImageIsBootedOnlyByNewerVersions(t *testing.T) {
	for version, works := range map[string]bool{"1.16.1": false, "1.17.0": true} {
		p := play(t, `{"version":"`+version+`"}`)
		write(t, p.path("bzImage"), "no ELF")
		p.good("PUT", "/boot-source", `{"kernel_image_path":"bzImage"}`)
		if status, text := p.call("PUT", "/actions", `{"action_type":"InstanceStart"}`); status < 300 != works {
			t.Errorf("%s: %d %s", version, status, text)
		}
	}
	// Fields of a later version are unknown to an earlier one.
	p := play(t, `{"version":"1.15.1"}`)
	p.refused("PUT", "/snapshot/load", `{"snapshot_path":"s","mem_file_path":"m","clock_realtime":true}`, "unknown field `clock_realtime`")
}

func TestOneConnectionTooMany(t *testing.T) {
	p := play(t, "")
	for range connectionsMax {
		conn, err := net.Dial("unix", p.path("api.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	var answer *http.Response
	p.await(func() bool {
		conn, err := net.Dial("unix", p.path("api.sock"))
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		answer, err = http.ReadResponse(bufio.NewReader(conn), nil)
		return err == nil
	})
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 503 || !strings.Contains(string(text), `"error": "Too many open connections"`) {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}

func TestStaleSockets(t *testing.T) {
	p := play(t, "")
	write(t, p.path("v.sock"), "")
	p.refused("PUT", "/vsock", `{"guest_cid":3,"uds_path":"v.sock"}`, "Address in use")
	again := start(t, p.dir, "", "--api-sock", "api.sock")
	again.exited(exitGeneric)
}

func TestVsock(t *testing.T) {
	p := play(t, `{"ports":{"52":"echo","53":"banner:hello"}}`)
	p.boot()
	conn, line := p.dial("CONNECT 52\n")
	var port int
	if _, err := fmt.Sscanf(line, "OK %d\n", &port); err != nil || port < firstHostPort {
		t.Fatalf("%q", line)
	}
	_, _ = io.WriteString(conn, "abc")
	_ = conn.(*net.UnixConn).CloseWrite()
	if text, err := io.ReadAll(conn); err != nil || string(text) != "abc" {
		t.Fatalf("%q %v", text, err)
	}
	// Content right behind the newline belongs to the stream.
	conn, line = p.dial("CONNECT 52\nxyz")
	three := make([]byte, 3)
	if _, err := io.ReadFull(conn, three); err != nil || string(three) != "xyz" || !strings.HasPrefix(line, "OK ") {
		t.Fatalf("%q %q %v", line, three, err)
	}
	for _, command := range []string{"CONNECT 99\n", "CONNECT", "GIBBERISH 52\n", "CONNECT x12345\n"} {
		if _, line = p.dial(command); line != "" {
			t.Errorf("%q: %q", command, line)
		}
	}
	split, err := net.Dial("unix", p.path("v.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer split.Close()
	_, _ = io.WriteString(split, "CONN")
	_ = split.SetDeadline(time.Now().Add(20 * time.Second))
	if n, err := split.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("a command in pieces is taken")
	}
}

func TestASnapshotEndsConnectionsWhenTheGuestRunsAgain(t *testing.T) {
	p := play(t, "")
	p.boot()
	conn, _ := p.dial("CONNECT 52\n")
	p.good("PATCH", "/vm", `{"state":"Paused"}`)
	p.good("PATCH", "/vm", `{"state":"Resumed"}`)
	_, _ = io.WriteString(conn, "a")
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatalf("a mere pause ends it: %v", err)
	}
	p.good("PATCH", "/vm", `{"state":"Paused"}`)
	p.good("PUT", "/snapshot/create", `{"snapshot_path":"state","mem_file_path":"mem"}`)
	p.good("PATCH", "/vm", `{"state":"Resumed"}`)
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("a snapshot doesn't end it")
	}
	if _, line := p.dial("CONNECT 52\n"); line == "" {
		t.Error("no new connection")
	}
}

func TestSnapshots(t *testing.T) {
	p := play(t, "")
	p.boot()
	p.good("PATCH", "/vm", `{"state":"Paused"}`)
	p.good("PUT", "/snapshot/create", `{"snapshot_path":"state","mem_file_path":"mem"}`)
	if info, err := os.Stat(p.path("mem")); err != nil || info.Size() != 16<<20 {
		t.Fatalf("%v %v", info, err)
	}
	described := start(t, p.dir, "", "--describe-snapshot", "state")
	described.exited(0)
	if described.said.String() != "v10.0.0\n" {
		t.Errorf("%q", described.said)
	}
	load := func(settings, more string) *played {
		c := play(t, settings)
		write(t, c.path("disk"), "y")
		body := fmt.Sprintf(`{"snapshot_path":%q,"mem_backend":{"backend_type":"File","backend_path":%q}%s}`, p.path("state"), p.path("mem"), more)
		c.good("PUT", "/snapshot/load", body)
		return c
	}
	a, b := load("", ""), load("", `,"resume_vm":true,"vsock_override":{"uds_path":"v.sock"},"clock_realtime":true`)
	if text := a.good("GET", "/", ""); !strings.Contains(text, "Paused") {
		t.Error(text)
	}
	if text := b.good("GET", "/", ""); !strings.Contains(text, "Running") {
		t.Error(text)
	}
	if _, line := b.dial("CONNECT 52\n"); line == "" {
		t.Error("a clone doesn't listen")
	}
	if text := b.good("GET", "/vm/config", ""); !strings.Contains(text, `"path_on_host":"disk"`) {
		t.Error(text)
	}

	ours := fmt.Sprintf(`{"snapshot_path":%q,"mem_backend":{"backend_type":"File","backend_path":%q}}`, p.path("state"), p.path("mem"))
	configured := play(t, "")
	configured.good("PUT", "/entropy", `{}`)
	configured.refused("PUT", "/snapshot/load", ours, "not allowed after configuring boot-specific resources")
	configured.good("GET", "/version", "")

	diskless := play(t, "")
	diskless.refused("PUT", "/snapshot/load", ours, "Error manipulating the backing file")
	diskless.exited(exitGeneric)

	newer := play(t, `{"version":"1.17.0","snapshot_version":"11.0.0"}`)
	newer.refused("PUT", "/snapshot/load", ours, "10.0.0")
	newer.exited(exitGeneric)

	text, err := os.ReadFile(p.path("state"))
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	write(t, p.path("state"), string(text))
	damaged := play(t, "")
	damaged.refused("PUT", "/snapshot/load", ours, "CRC64 validation failed")
	damaged.exited(exitGeneric)
}

func TestFaults(t *testing.T) {
	p := play(t, `{"faults":[{"call":"PUT /drives","nth":2,"status":400,"message":"no more"}]}`)
	write(t, p.path("disk"), "x")
	drive := `{"drive_id":"a","is_root_device":false,"is_read_only":true,"path_on_host":"disk"}`
	p.good("PUT", "/drives/a", drive)
	p.refused("PUT", "/drives/a", drive, "no more")
	p.good("PUT", "/drives/a", drive)
	p.set(`{"faults":[{"call":"GET /version","delay_ms":300}]}`)
	began := time.Now()
	p.good("GET", "/version", "")
	if time.Since(began) < 300*time.Millisecond {
		t.Error("not slow")
	}
	p.set(`{"faults":[{"call":"GET /version","drop":true}]}`)
	if _, _, err := p.try("GET", "/version", ""); err == nil {
		t.Error("not dropped")
	}
	p.set(`{"faults":[{"call":"PUT /entropy","after":true,"exit":148}]}`)
	_, _, _ = p.try("PUT", "/entropy", "{}")
	p.exited(148)

	start(t, t.TempDir(), `{"faults":[{"call":"start","exit":153}]}`, "--api-sock", "a").exited(153)
}

func TestASignalHasItsExitCode(t *testing.T) {
	for s, code := range map[syscall.Signal]int{syscall.SIGSYS: 148, syscall.SIGBUS: 149, syscall.SIGXFSZ: 151} {
		p := play(t, "")
		_ = p.command.Process.Signal(s)
		p.exited(code)
	}
	p := play(t, "")
	p.boot()
	p.good("PUT", "/actions", `{"action_type":"SendCtrlAltDel"}`)
	p.exited(0)
	rebooting := play(t, `{"reboot_ms":20}`)
	rebooting.boot()
	rebooting.exited(0)
}

func TestMetricsAndLog(t *testing.T) {
	p := play(t, "", "--log-path", "log", "--show-level")
	p.good("PUT", "/metrics", `{"metrics_path":"metrics","of_a_later_version":1}`)
	p.refused("PUT", "/metrics", `{"metrics_path":"metrics"}`, "Reinitialization of metrics not allowed")
	p.boot()
	p.good("PUT", "/actions", `{"action_type":"FlushMetrics"}`)
	text, err := os.ReadFile(p.path("metrics"))
	if err != nil {
		t.Fatal(err)
	}
	var line map[string]json.RawMessage
	if err := json.Unmarshal(text, &line); err != nil || line["block_disk"] == nil || line["vsock"] == nil {
		t.Errorf("%v %s", err, text)
	}
	if text, err := os.ReadFile(p.path("log")); err != nil || !strings.Contains(string(text), "Running Firecracker v1.16.1") {
		t.Errorf("%v %s", err, text)
	}
}

func TestBalloonAndMmds(t *testing.T) {
	p := play(t, "")
	p.good("PUT", "/balloon", `{"amount_mib":0,"deflate_on_oom":true,"stats_polling_interval_s":1}`)
	p.good("PUT", "/mmds", `{"a":{"b":1},"c":2}`)
	p.boot()
	p.good("PATCH", "/balloon", `{"amount_mib":4}`)
	if text := p.good("GET", "/balloon/statistics", ""); !strings.Contains(text, `"target_mib":4`) {
		t.Error(text)
	}
	p.refused("PATCH", "/balloon", `{"amount_mib":4000}`, "too large")
	p.good("PATCH", "/mmds", `{"a":{"b":null,"d":3}}`)
	if text := p.good("GET", "/mmds", ""); text != `{"a":{"d":3},"c":2}` {
		t.Error(text)
	}
}

func TestAConfigurationFileBoots(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "vmlinux"), "\x7fELF")
	write(t, filepath.Join(dir, "disk"), "x")
	write(t, filepath.Join(dir, "vm.json"), `{"boot-source":{"kernel_image_path":"vmlinux"},"machine-config":{"vcpu_count":1,"mem_size_mib":16},
		"drives":[{"drive_id":"a","is_root_device":true,"is_read_only":true,"path_on_host":"disk"}]}`)
	p := playIn(t, dir, "", "--config-file", "vm.json")
	if text := p.good("GET", "/", ""); !strings.Contains(text, "Running") {
		t.Error(text)
	}
	write(t, filepath.Join(dir, "vm.json"), `{"colour":1}`)
	start(t, dir, "", "--no-api", "--config-file", "vm.json").exited(exitBadConfig)
}
