package identity

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPublishReplacesTheWholeEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "space", "environment")
	for _, step := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"B": "two\nlines", "A": "=1"}, "A==1\x00B=two\nlines\x00"},
		{map[string]string{"C": ""}, "C=\x00"},
		{nil, ""},
	} {
		if err := Publish(file, step.env); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != step.want {
			t.Errorf("%q is published as %q, not as %q", step.env, got, step.want)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: only the environment is to be left", entries, err)
	}
}
