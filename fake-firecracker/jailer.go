package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// jailStage is the hidden first argument of the part that runs in the new pid namespace.
const jailStage = "--fake-jail-stage"

var jailerOptions = map[string]bool{
	"id": true, "exec-file": true, "uid": true, "gid": true, "chroot-base-dir": true, "netns": true, "daemonize": false,
	"new-pid-ns": false, "cgroup": true, "cgroup-version": true, "parent-cgroup": true, "resource-limit": true,
	"node": true, "version": false, "help": false,
}

func jailFail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "Error: "+format+"\n", args...)
	os.Exit(exitGeneric)
}

// jail is what the jailer is asked for.
type jail struct {
	id, name, root string
	uid, gid       int
	cgroups        [][2]string
	parent         string
	limits         map[string]uint64
	netns          string
	daemonize      bool
	pidNamespace   bool
	args           []string
}

func runJailer(args []string) {
	own, rest := args, []string(nil)
	for i, arg := range args {
		if arg == "--" {
			own, rest = args[:i], args[i+1:]
			break
		}
	}
	options, err := parseOptions(own, jailerOptions, "cgroup", "resource-limit")
	if err != nil {
		jailFail("Failed to parse arguments: %v", err)
	}
	if has(options, "version") {
		fmt.Printf("Jailer v%s\n\n", readSettings().Version)
		return
	}
	for _, name := range []string{"id", "exec-file", "uid", "gid"} {
		if !has(options, name) {
			jailFail("Failed to parse arguments: Argument '%s' required, but not found.", name)
		}
	}
	j := jail{id: options["id"][0], netns: value(options, "netns", ""), daemonize: has(options, "daemonize"),
		pidNamespace: has(options, "new-pid-ns"), args: rest, limits: map[string]uint64{"no-file": 2048}}
	if !validID(j.id) {
		jailFail("Invalid instance ID: %s", j.id)
	}
	for name, into := range map[string]*int{"uid": &j.uid, "gid": &j.gid} {
		n, err := strconv.ParseUint(options[name][0], 10, 32)
		if err != nil {
			jailFail("Invalid %s: %s", name, options[name][0])
		}
		*into = int(n)
	}
	program, err := filepath.Abs(options["exec-file"][0])
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		jailFail("Failed to canonicalize path %s: %v", options["exec-file"][0], osError(err))
	}
	j.name = filepath.Base(program)
	if !strings.Contains(j.name, "firecracker") {
		jailFail("Invalid filename. The filename of `--exec-file` option must contain \"firecracker\": %s", j.name)
	}
	base, err := filepath.EvalSymlinks(value(options, "chroot-base-dir", "/srv/jailer"))
	if err != nil {
		jailFail("Failed to canonicalize path %s: %v", value(options, "chroot-base-dir", "/srv/jailer"), osError(err))
	}
	j.root = filepath.Join(base, j.name, j.id, "root")
	if version := value(options, "cgroup-version", "1"); version != "2" && has(options, "cgroup") {
		jailFail("the fake knows cgroup version 2 alone, not %s", version)
	}
	j.parent = value(options, "parent-cgroup", j.name)
	if filepath.IsAbs(j.parent) || strings.Contains(j.parent, "..") {
		jailFail("Invalid parent cgroup path")
	}
	for _, text := range options["cgroup"] {
		name, v, found := strings.Cut(text, "=")
		if !found || v == "" || strings.Contains(v, "=") {
			jailFail("Invalid format for cgroups: %s", text)
		}
		j.cgroups = append(j.cgroups, [2]string{name, v})
	}
	for _, text := range options["resource-limit"] {
		name, v, _ := strings.Cut(text, "=")
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil || name != "fsize" && name != "no-file" {
			jailFail("Invalid resource argument: %s", text)
		}
		j.limits[name] = n
	}
	j.run(program)
}

func check(err error, what string) {
	if err != nil {
		jailFail("%s: %v", what, osError(err))
	}
}

func (j *jail) run(program string) {
	runtime.LockOSThread()
	// The real one copies modes, whatever the umask, and needs nothing lent by the host.
	unix.Umask(0o022)
	if j.netns != "" {
		fd, err := unix.Open(j.netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		check(err, "Failed to open file "+j.netns)
		check(unix.Setns(fd, unix.CLONE_NEWNET), "Failed to join network namespace: netns")
	}
	j.setLimits()
	j.enterCgroup()
	check(os.MkdirAll(j.root, 0o700), "Failed to create directory "+j.root)
	check(copyProgram(program, filepath.Join(j.root, j.name)), "Failed to copy "+program)
	if _, err := os.Stat(program + ".json"); err == nil {
		check(copyProgram(program+".json", filepath.Join(j.root, j.name+".json")), "Failed to copy the fake's settings")
		check(os.Chmod(filepath.Join(j.root, j.name+".json"), 0o644), "chmod")
	}
	check(unix.Unshare(unix.CLONE_NEWNS), "Failed to unshare into new mount namespace")
	check(unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""), "Failed to change the propagation type to slave")
	check(unix.Mount(j.root, j.root, "", unix.MS_BIND|unix.MS_REC, ""), "Failed to bind mount the jail root directory")
	j.lendHost()
	for _, dir := range []string{"", "dev", "dev/net", "run"} {
		path := filepath.Join(j.root, dir)
		if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
			check(err, "Failed to create directory "+path)
		}
		check(os.Chmod(path, 0o700), "Failed to change permissions on "+path)
		check(os.Chown(path, j.uid, j.gid), "Failed to change owner for "+path)
	}
	for _, node := range []struct {
		path         string
		major, minor uint32
	}{{"dev/net/tun", 10, 200}, {"dev/kvm", 10, 232}, {"dev/urandom", 1, 9}} {
		path := filepath.Join(j.root, node.path)
		check(unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(node.major, node.minor))),
			"Failed to create /"+node.path+" via mknod inside the jail")
		check(os.Chown(path, j.uid, j.gid), "Failed to change owner for "+path)
	}
	if j.daemonize {
		_, _ = unix.Setsid()
	}
	if !j.pidNamespace && !j.daemonize {
		j.enter()
		return
	}
	j.spawn(program)
}

// spawn starts the rest as a child, whose pid goes into the pid file.
func (j *jail) spawn(program string) {
	stage := exec.Command(program, append([]string{jailStage, j.root, j.name, j.id, strconv.Itoa(j.uid), strconv.Itoa(j.gid)}, j.args...)...)
	stage.Env = []string{}
	stage.SysProcAttr = &syscall.SysProcAttr{Setsid: j.daemonize}
	if j.pidNamespace {
		stage.SysProcAttr.Cloneflags = unix.CLONE_NEWPID
	}
	if !j.daemonize {
		stage.Stdin, stage.Stdout, stage.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	var pidFile *os.File
	if j.pidNamespace {
		// The child moves the root of this mount namespace away: afterwards the path leads nowhere.
		path := filepath.Join(j.root, j.name+".pid")
		var err error
		pidFile, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		check(err, "Failed to open file "+path)
	}
	check(stage.Start(), "Failed to exec into Firecracker")
	if pidFile != nil {
		_, err := fmt.Fprint(pidFile, stage.Process.Pid)
		check(err, "Failed to write the pid file")
		pidFile.Close()
	}
	os.Exit(0)
}

// enterJail is the stage in a child: it is given root, name, id, uid, gid and Firecracker's arguments.
func enterJail(args []string) {
	j := jail{root: args[0], name: args[1], id: args[2], args: args[5:]}
	j.uid, _ = strconv.Atoi(args[3])
	j.gid, _ = strconv.Atoi(args[4])
	j.enter()
}

// enter goes into the root, drops all rights and becomes Firecracker.
func (j *jail) enter() {
	runtime.LockOSThread()
	// Of the pid namespace that this process is in.
	_ = unix.Mount("proc", filepath.Join(j.root, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	check(os.Chdir(j.root), "Failed to change current directory")
	check(unix.PivotRoot(".", "."), "Failed to pivot root")
	check(unix.Unmount(".", unix.MNT_DETACH), "Failed to unmount the old root")
	check(os.Chdir("/"), "Failed to change current directory")
	check(unix.Setgroups(nil), "Failed to drop groups")
	check(unix.Setresgid(j.gid, j.gid, j.gid), "Failed to set gid")
	check(unix.Setresuid(j.uid, j.uid, j.uid), "Failed to set uid")
	args := append([]string{"/" + j.name, "--id", j.id, "--start-time-us", "0", "--start-time-cpu-us", "0",
		"--parent-cpu-time-us", "0"}, j.args...)
	check(unix.Exec("/"+j.name, args, []string{}), "Failed to exec into Firecracker")
}

func (j *jail) setLimits() {
	for name, n := range j.limits {
		limit := unix.Rlimit{Cur: n, Max: n}
		kind := unix.RLIMIT_NOFILE
		if name == "fsize" {
			// QEMU has the guest's memory in a file: it lifts the soft limit for itself.
			kind, limit.Max = unix.RLIMIT_FSIZE, unix.RLIM_INFINITY
		}
		check(unix.Setrlimit(kind, &limit), "Failed to set resource limit")
	}
}

// cgroupTop is where version 2 is mounted.
func cgroupTop() string {
	text, _ := os.ReadFile("/proc/self/mounts")
	for _, line := range strings.Split(string(text), "\n") {
		if words := strings.Fields(line); len(words) > 2 && words[2] == "cgroup2" {
			return words[1]
		}
	}
	jailFail("cgroups v2 are not mounted")
	return ""
}

func (j *jail) enterCgroup() {
	if len(j.cgroups) == 0 {
		return
	}
	top := cgroupTop()
	leaf := filepath.Join(top, j.parent, j.id)
	check(os.MkdirAll(leaf, 0o755), "Failed to create directory "+leaf)
	for _, setting := range j.cgroups {
		controller, _, _ := strings.Cut(setting[0], ".")
		if controller != "cgroup" {
			for dir := top; dir != leaf; {
				// What is on already may be on at a level that can't be written.
				_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
				next, _, _ := strings.Cut(strings.TrimPrefix(leaf, dir+"/"), "/")
				dir = filepath.Join(dir, next)
			}
		}
		path := filepath.Join(leaf, setting[0])
		check(os.WriteFile(path, []byte(setting[1]), 0), "Failed to write to "+path)
	}
	check(os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0), "Failed to move into "+leaf)
}

// lendHost lets QEMU run in the jail: the host's programs, read-only, in this mount namespace alone.
func (j *jail) lendHost() {
	if readSettings().Guest != "qemu" {
		return
	}
	for _, dir := range []string{"usr", "lib", "lib64", "bin"} {
		path := filepath.Join(j.root, dir)
		if target, err := os.Readlink("/" + dir); err == nil {
			_ = os.Symlink(target, path)
			continue
		}
		if _, err := os.Stat("/" + dir); err != nil {
			continue
		}
		_ = os.Mkdir(path, 0o755)
		check(unix.Mount("/"+dir, path, "", unix.MS_BIND, ""), "Failed to lend /"+dir)
		check(unix.Mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""), "Failed to lend /"+dir)
	}
	_ = os.Mkdir(filepath.Join(j.root, "proc"), 0o555)
	_ = os.Mkdir(filepath.Join(j.root, "etc"), 0o755)
	for _, file := range []string{"etc/ld.so.cache", "etc/ld.so.conf"} {
		_ = copyProgram("/"+file, filepath.Join(j.root, file))
	}
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
