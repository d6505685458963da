package process

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"space/agent/account"
	"space/agent/fault"
)

const (
	maxIDLength = 128
	maxArgs     = 16384
	maxArgBytes = 128 << 10 // of one argument or entry of the environment: the kernel's own limit
	maxEnv      = 4096
	maxTag      = 4096
	// MaxTimeout is the longest life that can be asked for.
	MaxTimeout = 10 * 365 * 24 * time.Hour
)

// Spec is what is asked of Start.
type Spec struct {
	ID             string
	Argv           []string
	Env            map[string]string
	Cwd            string
	User           string
	Stdin          bool
	Pty            *Size
	Timeout        time.Duration // 0 = none
	Tag            string
	KillTreeAtExit bool
}

// Defaults are what Adopt gave for every process.
type Defaults struct {
	Env     map[string]string
	User    string
	Workdir string
}

func (s *Spec) check() error {
	switch {
	case s.ID == "" || len(s.ID) > maxIDLength:
		return fault.Invalid("an id has 1 to %d characters", maxIDLength)
	case len(s.Argv) == 0 || s.Argv[0] == "":
		return fault.Invalid("argv is empty")
	case len(s.Argv) > maxArgs:
		return fault.Invalid("argv has %d words, at most %d are taken", len(s.Argv), maxArgs)
	case len(s.Env) > maxEnv:
		return fault.Invalid("env has %d entries, at most %d are taken", len(s.Env), maxEnv)
	case len(s.Tag) > maxTag:
		return fault.Invalid("a tag has at most %d bytes", maxTag)
	case s.Timeout < 0 || s.Timeout > MaxTimeout:
		return fault.Invalid("a timeout is at most %s", MaxTimeout)
	case s.Pty != nil && !s.Pty.valid():
		return fault.Invalid("a terminal has 1 to %d columns and rows, not %d x %d", maxWindow, s.Pty.Cols, s.Pty.Rows)
	case strings.IndexByte(s.Cwd, 0) >= 0:
		return fault.Invalid("cwd holds a NUL")
	}
	for _, word := range s.Argv {
		if len(word) >= maxArgBytes || strings.IndexByte(word, 0) >= 0 {
			return fault.Invalid("a word of argv has less than %d bytes and no NUL", maxArgBytes)
		}
	}
	return CheckEnv(s.Env)
}

// CheckEnv refuses what can't stand in an environment.
func CheckEnv(env map[string]string) error {
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fault.Invalid("%q can't be the name of an environment variable", name)
		}
		if strings.IndexByte(value, 0) >= 0 || len(name)+len(value)+2 > maxArgBytes {
			return fault.Invalid("the environment variable %q holds a NUL or has more than %d bytes", name, maxArgBytes)
		}
	}
	return nil
}

// launch is a Spec with everything looked up that the guest decides.
type launch struct {
	account account.Account
	env     []string
	cwd     string
	program string
}

func (s *Spec) resolve(defaults Defaults, accounts account.Directory) (*launch, error) {
	user := s.User
	if user == "" {
		user = defaults.User
	}
	who, err := accounts.Find(user)
	if err != nil {
		return nil, err
	}
	env := map[string]string{
		"PATH": account.DefaultPath, "HOME": who.Home, "USER": who.Name, "LOGNAME": who.Name, "SHELL": who.Shell,
	}
	if s.Pty != nil {
		env["TERM"] = "xterm-256color"
	}
	for name, value := range defaults.Env {
		env[name] = value
	}
	for name, value := range s.Env {
		env[name] = value
	}
	cwd, err := s.workdir(defaults.Workdir, who.Home)
	if err != nil {
		return nil, err
	}
	program, err := lookup(s.Argv[0], cwd, env["PATH"])
	if err != nil {
		return nil, err
	}
	words := make([]string, 0, len(env)+1)
	for name, value := range env {
		words = append(words, name+"="+value)
	}
	return &launch{account: who, env: words, cwd: cwd, program: program}, nil
}

func (s *Spec) workdir(standard, home string) (string, error) {
	asked := s.Cwd
	if asked == "" {
		asked = standard
	}
	if asked == "" {
		if info, err := os.Stat(home); err != nil || !info.IsDir() {
			return "/", nil
		}
		return home, nil
	}
	dir := Expand(asked, home)
	info, err := os.Stat(dir)
	switch {
	case err != nil && errors.Is(err, unix.EACCES):
		return "", fault.New(codes.PermissionDenied, "permission_denied", "working directory %q: %v", dir, unix.EACCES)
	case err != nil:
		return "", fault.New(codes.NotFound, "workdir_not_found", "the working directory %q doesn't exist", dir)
	case !info.IsDir():
		return "", fault.New(codes.NotFound, "workdir_not_found", "the working directory %q isn't a directory", dir)
	}
	return dir, nil
}

// Expand makes a path absolute: "~" and relative ones start at home.
func Expand(asked, home string) string {
	switch {
	case asked == "~" || asked == "":
		return home
	case strings.HasPrefix(asked, "~/"):
		return strings.TrimSuffix(home, "/") + asked[1:]
	case path.IsAbs(asked):
		return asked
	default:
		return strings.TrimSuffix(home, "/") + "/" + asked
	}
}

func lookup(name, cwd, searched string) (string, error) {
	if strings.Contains(name, "/") {
		file := name
		if !path.IsAbs(file) {
			file = filepath.Join(cwd, file)
		}
		return file, executable(file, name)
	}
	denied := false
	for _, dir := range filepath.SplitList(searched) {
		if dir == "" {
			dir = "."
		}
		if !path.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		file := path.Join(dir, name)
		err := executable(file, name)
		if err == nil {
			return file, nil
		}
		if info, statErr := os.Stat(file); statErr == nil && info.Mode().IsRegular() {
			denied = true
		}
	}
	if denied {
		return "", fault.New(codes.PermissionDenied, "permission_denied", "the command %q isn't executable", name)
	}
	return "", fault.New(codes.NotFound, "command_not_found", "no command %q in PATH (%s)", name, searched)
}

func executable(file, name string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return fault.New(codes.NotFound, "command_not_found", "the command %q doesn't exist", name)
	case info.IsDir():
		return fault.New(codes.PermissionDenied, "permission_denied", "the command %q is a directory", name)
	case info.Mode()&0o111 == 0:
		return fault.New(codes.PermissionDenied, "permission_denied", "the command %q isn't executable", name)
	}
	return nil
}

// startFault explains why the kernel wouldn't execute.
func startFault(err error, argv0, cwd string) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return fault.New(codes.NotFound, "command_not_found", "the command %q can't run: its interpreter doesn't exist", argv0)
	case errors.Is(err, unix.ENOEXEC):
		return fault.New(codes.InvalidArgument, "command_not_executable", "the command %q isn't a program this machine runs", argv0)
	case errors.Is(err, unix.EACCES):
		return fault.New(codes.PermissionDenied, "permission_denied", "the user may not enter %q or execute %q", cwd, argv0)
	case errors.Is(err, unix.E2BIG):
		return fault.Invalid("argv and environment are too large together")
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM):
		return fault.New(codes.ResourceExhausted, "too_many_processes", "the guest can't start another process: %v", err)
	default:
		return fault.Internal("start %q: %v", argv0, err)
	}
}
