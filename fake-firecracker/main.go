// A stand-in for Firecracker and its jailer, for tests on machines without a KVM that works: the same
// command line, the same API, the same refusals. Either nothing runs behind it, or QEMU does.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Exit codes of Firecracker.
const (
	exitGeneric       = 1
	exitUnexpected    = 2
	exitBadConfig     = 152
	exitBadArguments  = 153
	defaultSocket     = "/run/firecracker.socket"
	payloadBytesMax   = 51200
	defaultInstanceID = "anonymous-instance"
)

func main() {
	if strings.Contains(filepath.Base(os.Args[0]), "jailer") {
		runJailer(os.Args[1:])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == jailStage {
		enterJail(os.Args[2:])
		return
	}
	runFirecracker(os.Args[1:])
}

// options are those of the command line; true is one that takes a value.
var firecrackerOptions = map[string]bool{
	"api-sock": true, "id": true, "seccomp-filter": true, "no-seccomp": false, "start-time-us": true,
	"start-time-cpu-us": true, "parent-cpu-time-us": true, "config-file": true, "metadata": true,
	"no-api": false, "log-path": true, "level": true, "module": true, "show-level": false,
	"show-log-origin": false, "metrics-path": true, "boot-timer": false, "version": false,
	"snapshot-version": false, "describe-snapshot": true, "http-api-max-payload-size": true,
	"mmds-size-limit": true, "enable-pci": false, "help": false,
}

// parseOptions gives each option's values; repeatable ones may come more than once.
func parseOptions(args []string, known map[string]bool, repeatable ...string) (map[string][]string, error) {
	found := map[string][]string{}
	for i := 0; i < len(args); i++ {
		name, isOption := strings.CutPrefix(args[i], "--")
		takesValue, isKnown := known[name]
		if !isOption || !isKnown {
			return nil, fmt.Errorf("Found argument '%s' which wasn't expected, or isn't valid in this context.", args[i])
		}
		if len(found[name]) > 0 && !contains(repeatable, name) {
			return nil, fmt.Errorf("The argument '%s' was provided more than once.", name)
		}
		value := ""
		if takesValue {
			if i++; i == len(args) || strings.HasPrefix(args[i], "--") {
				return nil, fmt.Errorf("The argument '%s' requires a value, but none was supplied.", name)
			}
			value = args[i]
		}
		found[name] = append(found[name], value)
	}
	return found, nil
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

func value(options map[string][]string, name, otherwise string) string {
	if found := options[name]; len(found) > 0 {
		return found[0]
	}
	return otherwise
}

func has(options map[string][]string, name string) bool { return len(options[name]) > 0 }

func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range id {
		if !(c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return true
}

// fail ends the process the way Firecracker does.
func (l *logger) fail(code int, what string) {
	fmt.Fprintf(os.Stderr, "Error: %s\n", what)
	l.write("ERROR", what)
	l.write("ERROR", fmt.Sprintf("Firecracker exiting with error. exit_code=%d", code))
	os.Exit(code)
}

func runFirecracker(args []string) {
	log := &logger{id: defaultInstanceID, level: "INFO"}
	options, err := parseOptions(args, firecrackerOptions)
	if err != nil {
		log.fail(exitBadArguments, fmt.Sprintf("Arguments parsing error: %v \n\nFor more information try --help.", err))
	}
	settings := readSettings()
	switch {
	case has(options, "help"):
		fmt.Printf("Firecracker v%s\n\nThis is the fake one: see its README.\n", settings.Version)
		return
	case has(options, "version"):
		fmt.Printf("Firecracker v%s\n\n", settings.Version)
		return
	case has(options, "snapshot-version"):
		fmt.Printf("v%s\n", settings.SnapshotVersion)
		return
	case has(options, "describe-snapshot"):
		state, err := readState(options["describe-snapshot"][0])
		if err != nil {
			log.fail(exitGeneric, fmt.Sprintf("When printing Snapshot Data format: %v", err))
		}
		fmt.Printf("v%s\n", state.Format)
		return
	}
	id := value(options, "id", defaultInstanceID)
	if !validID(id) {
		// The real one panics here, which aborts it.
		fmt.Fprintf(os.Stderr, "Invalid instance ID: %q\n", id)
		_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
		time.Sleep(time.Second)
	}
	log.id = id
	if level := value(options, "level", "Info"); !log.setLevel(level) {
		log.fail(exitBadConfig, "Invalid value for logger level: "+level+". Possible values: [Error, Warning, Info, Debug]")
	}
	if path := value(options, "log-path", ""); path != "" {
		if err := log.open(path); err != nil {
			log.fail(exitGeneric, fmt.Sprintf("Could not initialize logger: %v", osError(err)))
		}
	}
	log.write("INFO", "Running Firecracker v"+settings.Version)
	metrics := newMetrics()
	if path := value(options, "metrics-path", ""); path != "" {
		if err := metrics.open(path); err != nil {
			log.fail(exitGeneric, fmt.Sprintf("Could not initialize metrics: %v", osError(err)))
		}
	}
	settings.faults.strike("start", false, log)
	exitOnSignals(log)

	machine := newMachine(id, log, metrics, has(options, "enable-pci"))
	limit, err := strconv.Atoi(value(options, "http-api-max-payload-size", strconv.Itoa(payloadBytesMax)))
	if err != nil {
		log.fail(exitGeneric, "'http-api-max-payload-size' parameter expected to be of 'usize' type.")
	}
	machine.mmdsMax = limit
	if given := value(options, "mmds-size-limit", ""); given != "" {
		if machine.mmdsMax, err = strconv.Atoi(given); err != nil {
			log.fail(exitGeneric, "'mmds-size-limit' parameter expected to be of 'usize' type.")
		}
	}
	var listener *net.UnixListener
	if !has(options, "no-api") {
		path := value(options, "api-sock", defaultSocket)
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			log.fail(exitGeneric, fmt.Sprintf("RunWithApi error: Failed to bind and run the HTTP server: %v", osError(err)))
		}
		// The real one leaves its socket behind.
		listener.SetUnlinkOnClose(false)
	} else if !has(options, "config-file") {
		log.fail(exitBadArguments, "Arguments parsing error: Argument 'config-file' required, but not found.")
	}
	api := &api{machine: machine, log: log, metrics: metrics, bodyMax: limit}
	if path := value(options, "config-file", ""); path != "" {
		if err := bootFromFile(api, path); err != nil {
			log.fail(exitBadConfig, fmt.Sprintf("RunWithApi error: Failed to build from config: %v", err))
		}
	}
	go metrics.flushEachMinute(machine)
	if listener == nil {
		select {}
	}
	api.serve(listener)
}

// configOrder is that in which the parts of a configuration file are applied.
var configOrder = []string{"logger", "metrics", "machine-config", "cpu-config", "boot-source", "drives",
	"network-interfaces", "vsock", "entropy", "balloon", "mmds-config"}

func bootFromFile(api *api, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return osError(err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	for name := range parts {
		if !contains(configOrder, name) {
			return fmt.Errorf("unknown field `%s`", name)
		}
	}
	for _, name := range configOrder {
		part, given := parts[name]
		if !given || string(part) == "null" {
			continue
		}
		target := "/" + strings.Replace(name, "mmds-config", "mmds/config", 1)
		bodies := []json.RawMessage{part}
		isList := name == "drives" || name == "network-interfaces"
		if isList {
			if err := json.Unmarshal(part, &bodies); err != nil {
				return err
			}
		}
		for _, body := range bodies {
			path := target
			if isList {
				var ids struct {
					Drive string `json:"drive_id"`
					Iface string `json:"iface_id"`
				}
				_ = json.Unmarshal(body, &ids)
				path += "/" + ids.Drive + ids.Iface
			}
			if answer := api.call("PUT", path, body); answer.status >= 400 {
				return errors.New(answer.fault)
			}
		}
	}
	if answer := api.call("PUT", "/actions", []byte(`{"action_type":"InstanceStart"}`)); answer.status >= 400 {
		return errors.New(answer.fault)
	}
	return nil
}

// exitOnSignals maps signals to exit codes as Firecracker's handlers do.
func exitOnSignals(log *logger) {
	codes := map[os.Signal]int{
		syscall.SIGSYS: 148, syscall.SIGBUS: 149, syscall.SIGSEGV: 150, syscall.SIGXFSZ: 151,
		syscall.SIGXCPU: 154, syscall.SIGHUP: 156, syscall.SIGILL: 157,
	}
	arrived := make(chan os.Signal, 1)
	for s := range codes {
		signal.Notify(arrived, s)
	}
	go func() {
		s := <-arrived
		log.write("ERROR", fmt.Sprintf("Shutting down VM after intercepting signal %d", s))
		os.Exit(codes[s])
	}()
}

// osError says what the system said, the way Rust prints it.
func osError(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		text := number.Error()
		if number == syscall.EADDRINUSE {
			text = "address in use" // as musl has it
		}
		return fmt.Errorf("%s (os error %d)", strings.ToUpper(text[:1])+text[1:], int(number))
	}
	return err
}
