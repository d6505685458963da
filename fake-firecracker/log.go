package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var levels = map[string]int{
	"OFF": 0, "Off": 0, "ERROR": 1, "Error": 1, "WARN": 2, "Warn": 2, "Warning": 2, "INFO": 3, "Info": 3,
	"DEBUG": 4, "Debug": 4, "TRACE": 5, "Trace": 5,
}

// logger writes lines as Firecracker does; without a file there is none but on errors.
type logger struct {
	mu     sync.Mutex
	id     string
	level  string
	origin bool
	named  bool
	file   *os.File
}

func (l *logger) setLevel(level string) bool {
	if _, known := levels[level]; !known {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.level = level
	return true
}

// open takes a file or FIFO; a full FIFO loses lines.
func (l *logger) open(path string) error {
	file, err := openOutput(path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = file
	return nil
}

func openOutput(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o644)
}

func (l *logger) write(level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || levels[level] > levels[l.level] {
		return
	}
	line := fmt.Sprintf("%s [%s:main", time.Now().Format("2006-01-02T15:04:05.000000000"), l.id)
	if l.named {
		line += ":" + level
	}
	if l.origin {
		line += ":fake"
	}
	_, _ = l.file.WriteString(line + "] " + text + "\n")
}

// metrics count; each line that is written has what was counted since the one before.
type metrics struct {
	mu    sync.Mutex
	file  *os.File
	count map[string]map[string]int64

	vsockIn, vsockOut, vsockAdded, vsockRemoved atomic.Int64
	started                                     time.Time
}

func newMetrics() *metrics {
	return &metrics{count: map[string]map[string]int64{}, started: time.Now()}
}

func (m *metrics) open(path string) error {
	file, err := openOutput(path)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.file = file
	m.mu.Unlock()
	return nil
}

func (m *metrics) isOpen() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file != nil
}

func (m *metrics) add(group, name string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count[group] == nil {
		m.count[group] = map[string]int64{}
	}
	m.count[group][name] += n
}

// store is of figures that aren't added up, such as how long the last call took.
func (m *metrics) store(group, name string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count[group] == nil {
		m.count[group] = map[string]int64{}
	}
	m.count[group][name] = n
}

// flush writes one line. Groups of devices are there for each device, as in the real one.
func (m *metrics) flush(drives, interfaces []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return fmt.Errorf("metrics are not configured")
	}
	line := map[string]any{"utc_timestamp_ms": time.Now().UnixMilli()}
	for _, group := range []string{"api_server", "get_api_requests", "put_api_requests", "patch_api_requests", "latencies_us"} {
		line[group] = map[string]int64{}
	}
	for group, counts := range m.count {
		line[group] = counts
	}
	block := map[string]int64{"read_bytes": 0, "write_bytes": 0, "read_count": 0, "write_count": 0,
		"flush_count": 0, "rate_limiter_throttled_events": 0, "io_engine_throttled_events": 0}
	net := map[string]int64{"rx_bytes_count": 0, "tx_bytes_count": 0, "rx_packets_count": 0, "tx_packets_count": 0,
		"rx_rate_limiter_throttled": 0, "tx_rate_limiter_throttled": 0}
	line["block"], line["net"] = block, net
	for _, id := range drives {
		line["block_"+id] = block
	}
	for _, id := range interfaces {
		line["net_"+id] = net
	}
	line["vsock"] = map[string]int64{
		"rx_bytes_count": m.vsockIn.Swap(0), "tx_bytes_count": m.vsockOut.Swap(0),
		"conns_added": m.vsockAdded.Swap(0), "conns_removed": m.vsockRemoved.Swap(0),
	}
	line["vmm"] = map[string]int64{"panic_count": 0}
	line["seccomp"] = map[string]int64{"num_faults": 0}
	line["signals"] = map[string]int64{"sigbus": 0, "sigsegv": 0, "sigxfsz": 0, "sigxcpu": 0, "sigpipe": 0, "sighup": 0, "sigill": 0}
	line["vcpu"] = map[string]int64{"exit_io_in": 0, "exit_io_out": 0, "exit_mmio_read": 0, "exit_mmio_write": 0, "failures": 0}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	m.count = map[string]map[string]int64{}
	_, err = m.file.Write(append(text, '\n'))
	return err
}

func (m *metrics) flushEachMinute(machine *machine) {
	for range time.Tick(time.Minute) {
		if m.isOpen() {
			_ = m.flush(machine.deviceIDs())
		}
	}
}
