package boot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// modules loads kernel modules from a directory with a modules.dep and a list of those wanted.
type modules struct {
	dir  string
	load func(file string) error
	// needs and file are by module name.
	needs map[string][]string
	file  map[string]string
	done  map[string]bool
}

func moduleName(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".ko"), "-", "_")
}

// LoadModules loads what dir/wanted names, and before each what dir/modules.dep says it needs. A name
// that modules.dep doesn't have is built into the kernel, or its absence is met when it is missed.
func LoadModules(dir string) error {
	m := &modules{dir: dir, load: loadModule}
	return m.run()
}

func (m *modules) run() error {
	m.needs, m.file, m.done = map[string][]string{}, map[string]string{}, map[string]bool{}
	dep, err := os.Open(filepath.Join(m.dir, "modules.dep"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // a kernel with everything built in
	}
	if err != nil {
		return err
	}
	defer dep.Close()
	if err := m.parse(dep); err != nil {
		return fmt.Errorf("modules.dep: %w", err)
	}
	wanted, err := os.ReadFile(filepath.Join(m.dir, "wanted"))
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(wanted)) {
		if err := m.insert(moduleName(name), 0); err != nil {
			return err
		}
	}
	return nil
}

func (m *modules) parse(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		file, rest, found := strings.Cut(lines.Text(), ":")
		if !found || strings.HasPrefix(file, "#") {
			continue
		}
		name := moduleName(strings.TrimSpace(file))
		m.file[name] = strings.TrimSpace(file)
		for _, needed := range strings.Fields(rest) {
			m.needs[name] = append(m.needs[name], moduleName(needed))
		}
	}
	return lines.Err()
}

const maxModuleDepth = 64

func (m *modules) insert(name string, depth int) error {
	file, known := m.file[name]
	if m.done[name] || !known {
		return nil
	}
	if depth > maxModuleDepth {
		return fmt.Errorf("module %s needs itself", name)
	}
	// A line lists all that is needed, the deepest last.
	needed := m.needs[name]
	for i := len(needed) - 1; i >= 0; i-- {
		if err := m.insert(needed[i], depth+1); err != nil {
			return err
		}
	}
	m.done[name] = true
	where := filepath.Join(m.dir, file)
	if _, err := os.Stat(where); err != nil {
		where = filepath.Join(m.dir, path.Base(file))
	}
	if err := m.load(where); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load module %s: %w", name, err)
	}
	return nil
}

func loadModule(file string) error {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.FinitModule(fd, "", 0)
}
