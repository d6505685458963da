// Package boot brings a guest from its initramfs to its own root file system, and down again.
package boot

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Options are the agent's own on the kernel's command line.
type Options struct {
	// PortName is that of the virtio-serial port of the link; empty when the link is vsock.
	PortName string
	// VsockPort is the port to listen on; 0 when the link is virtio-serial.
	VsockPort uint32
	// Reboot says that the machine ends by a reboot (Firecracker on x86 has no power-off).
	Reboot bool
	// Hostname is the one until Adopt gives another.
	Hostname string
}

// DefaultPortName is that of the link's port where the command line names none.
const DefaultPortName = "space.agent"

// ReadOptions reads /proc/cmdline.
func ReadOptions() (Options, error) {
	text, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return Options{}, err
	}
	return parseOptions(string(text))
}

func parseOptions(cmdline string) (Options, error) {
	options := Options{PortName: DefaultPortName, Hostname: "sandbox"}
	for _, word := range strings.Fields(cmdline) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "space.link":
			kind, where, _ := strings.Cut(value, ":")
			switch kind {
			case "virtio":
				options.VsockPort = 0
				options.PortName = DefaultPortName
				if where != "" {
					options.PortName = where
				}
			case "vsock":
				port, err := strconv.ParseUint(where, 10, 32)
				if err != nil || port == 0 {
					return options, fmt.Errorf("space.link=%s: vsock needs a port", value)
				}
				options.VsockPort, options.PortName = uint32(port), ""
			default:
				return options, fmt.Errorf("space.link=%s: it is virtio:<name> or vsock:<port>", value)
			}
		case "space.poweroff":
			switch value {
			case "reboot":
				options.Reboot = true
			case "off":
				options.Reboot = false
			default:
				return options, fmt.Errorf("space.poweroff=%s: it is off or reboot", value)
			}
		case "space.hostname":
			options.Hostname = value
		}
	}
	return options, nil
}
