package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"space/agent/account"
	"space/agent/files"
)

var root = account.Account{Name: "root"}

func arm(t *testing.T, dir string, recursive bool) *Watcher {
	t.Helper()
	w, err := Open(root, dir, recursive, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// until gathers events up to and with the first of a name.
func until(t *testing.T, w *Watcher, last string) []string {
	t.Helper()
	timer := time.AfterFunc(10*time.Second, w.Close)
	defer timer.Stop()
	var all []string
	for {
		events, err := w.Next()
		if err != nil {
			t.Fatalf("%v after %v", err, all)
		}
		for _, e := range events {
			all = append(all, fmt.Sprintf("%s %s", [...]string{"CREATE", "WRITE", "REMOVE", "RENAME", "CHMOD", "OVERFLOW"}[e.Kind], e.Name))
			if e.Name == last {
				return all[:len(all)-1]
			}
		}
	}
}

func write(t *testing.T, path string, content string, atomic bool) {
	t.Helper()
	w, err := files.Write(root, files.Target{Path: path, Atomic: atomic})
	if err == nil {
		err = w.Append([]byte(content))
	}
	if err == nil {
		_, err = w.Finish()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, got []string, events ...string) {
	t.Helper()
	if len(got)+len(events) > 0 && !reflect.DeepEqual(got, events) {
		t.Fatalf("got %q, want %q", got, events)
	}
}

func TestUploadsAreSeenExactly(t *testing.T) {
	dir := t.TempDir()
	w := arm(t, dir, false)
	write(t, dir+"/f", "hello", false)
	write(t, dir+"/end1", "", false)
	want(t, until(t, w, "end1"), "CREATE f", "CHMOD f", "WRITE f")
	until(t, arm(t, dir, false), func() string { write(t, dir+"/x", "", false); return "x" }())
	w = arm(t, dir, false)
	write(t, dir+"/f", "hell", false)
	write(t, dir+"/end2", "", false)
	want(t, until(t, w, "end2"), "CHMOD f", "WRITE f")
	w = arm(t, dir, false)
	write(t, dir+"/g", "atomic", true)
	_ = os.Rename(dir+"/g", dir+"/h")
	_ = os.Remove(dir + "/h")
	write(t, dir+"/end3", "", false)
	want(t, until(t, w, "end3"), "CREATE g", "RENAME g", "CREATE h", "REMOVE h")
}

// Behaviour 35.
func TestNothingIsMissedInNewDirectories(t *testing.T) {
	dir := t.TempDir()
	w := arm(t, dir, true)
	const n = 60
	for i := range n {
		deep := filepath.Join(dir, fmt.Sprint(i), "a", "b")
		if err := os.MkdirAll(deep, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(deep+"/file", nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir+"/end", "", false)
	seen := map[string]int{}
	for _, e := range until(t, w, "end") {
		seen[e]++
	}
	// The last ones may be told after "end", which only a scan can overtake; go on until they are.
	for i := range n {
		name := fmt.Sprintf("CREATE %d/a/b/file", i)
		if seen[name] != 1 {
			t.Errorf("%s: %d times", name, seen[name])
		}
	}
}

func TestAMovedDirectoryIsFollowedAndOneMovedOutIsNot(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	_ = os.MkdirAll(dir+"/a/sub", 0o755)
	w := arm(t, dir, true)
	_ = os.Rename(dir+"/a", dir+"/b")
	_ = os.Mkdir(dir+"/b/sub/new", 0o755)
	_ = os.Rename(dir+"/b", outside+"/gone")
	_ = os.Mkdir(outside+"/gone/x", 0o755)
	_ = os.Mkdir(dir+"/end", 0o755)
	got := until(t, w, "end")
	if len(got) > 4 && got[4] == "CREATE b/x" { // made before the agent saw the move
		got = got[:4]
	}
	want(t, got, "RENAME a", "CREATE b", "CREATE b/sub/new", "RENAME b")
}

func TestTheRootsRemovalEndsTheWatch(t *testing.T) {
	dir := t.TempDir() + "/d"
	_ = os.Mkdir(dir, 0o755)
	w := arm(t, dir, true)
	_ = os.Remove(dir)
	want(t, until(t, w, ""))
	if _, err := w.Next(); err == nil {
		t.Fatal("no error")
	}
}

func TestAMarkComesAfterAllThatWasBeforeIt(t *testing.T) {
	dir := t.TempDir()
	w := arm(t, dir, false)
	given := make(chan Event)
	go func() {
		defer close(given)
		for {
			events, err := w.Next()
			if err != nil {
				return
			}
			for _, e := range events {
				given <- e
			}
		}
	}()
	for i := range 500 {
		name := fmt.Sprint(i)
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		mark, seen := w.Mark(), false
		for e := range given {
			seen = seen || e.Kind == Create && e.Name == name
			if e.Kind == Reached && e.Mark >= mark {
				break
			}
		}
		if !seen {
			t.Fatalf("mark %d came before %q, or the watch ended", mark, name)
		}
	}
	w.Close()
	for range given {
	}
}
