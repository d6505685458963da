package server

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	pb "space/agent/agentpb"
	"space/agent/fault"
)

const (
	millisPerTick = 10 // USER_HZ is 100 in every Linux ABI
	idleField     = 4  // of the line "cpu" of /proc/stat, with its name
	iowaitField   = 5
	guestField    = 9 // already counted as user time
)

// Stats measures the guest.
func (a *Agent) Stats(context.Context, *pb.StatsRequest) (*pb.StatsReply, error) {
	reply := &pb.StatsReply{CpuCount: uint32(runtime.NumCPU()), ProcessCount: uint32(a.Processes.Living())}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, fault.Internal("%v", err)
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(line) {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil || i >= guestField {
			continue
		}
		reply.CpuTotalMillis += ticks * millisPerTick
		if i != idleField && i != iowaitField {
			reply.CpuBusyMillis += ticks * millisPerTick
		}
	}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil, fault.Internal("%v", err)
	}
	kib := map[string]uint64{}
	for _, line := range strings.Split(string(memory), "\n") {
		if fields := strings.Fields(line); len(fields) >= 2 {
			kib[strings.TrimSuffix(fields[0], ":")], _ = strconv.ParseUint(fields[1], 10, 64)
		}
	}
	reply.MemoryTotal = kib["MemTotal"] << 10
	reply.MemoryUsed = (kib["MemTotal"] - min(kib["MemAvailable"], kib["MemTotal"])) << 10
	reply.MemoryCache = (kib["Cached"] + kib["Buffers"] + kib["SReclaimable"]) << 10
	var disk unix.Statfs_t
	if err := unix.Statfs("/", &disk); err != nil {
		return nil, fault.Internal("%v", err)
	}
	reply.DiskTotal = disk.Blocks * uint64(disk.Bsize)
	reply.DiskUsed = (disk.Blocks - disk.Bfree) * uint64(disk.Bsize)
	return reply, nil
}
