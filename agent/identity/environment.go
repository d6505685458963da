package identity

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// EnvironmentFile tells programs that run already, such as a template's start command, the environment
// that commands started from now on have. It is written anew with each Adopt.
const EnvironmentFile = "/run/space/environment"

// Publish writes the environment to a file, in the form of /proc/PID/environ and sorted. Readers see the
// old content or the new, never a part.
func Publish(file string, env map[string]string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("publish the environment: %w", err)
	}
	words := make([]string, 0, len(env))
	for name, value := range env {
		words = append(words, name+"="+value+"\x00")
	}
	slices.Sort(words)
	fresh := file + ".new"
	_ = os.Remove(fresh)
	if err := os.WriteFile(fresh, []byte(strings.Join(words, "")), 0o444); err != nil {
		return fmt.Errorf("publish the environment: %w", err)
	}
	if err := os.Rename(fresh, file); err != nil {
		return fmt.Errorf("publish the environment: %w", err)
	}
	return nil
}
