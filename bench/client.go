package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client speaks to the service as any program does: HTTP/1.1, connections kept alive.
type client struct {
	control, data, key string
	http               *http.Client
}

func newClient(control, data, key string) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 4096, MaxIdleConns: 8192, DisableCompression: true,
		ReadBufferSize: 256 << 10, WriteBufferSize: 64 << 10}
	return &client{control, data, key, &http.Client{Transport: transport}}
}

type operation struct {
	ID        string          `json:"id"`
	State     string          `json:"state"`
	SandboxID string          `json:"sandbox_id"`
	Error     json.RawMessage `json:"error"`
}

type session struct {
	AttachURL   string `json:"attach_url"`
	AttachToken string `json:"attach_token"`
}

func (c *client) send(method, url, bearer string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	if _, isJSON := body.(*bytes.Reader); isJSON {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, response.Status, text)
	}
	return response, nil
}

// call sends JSON to the control plane and reads JSON.
func (c *client) call(method, path string, body, answer any) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	response, err := c.send(method, c.control+path, c.key, reader)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// await waits for the end of an operation.
func (c *client) await(op operation) error {
	for {
		switch op.State {
		case "succeeded":
			return nil
		case "failed", "cancelled":
			return fmt.Errorf("operation %s: %s", op.State, op.Error)
		}
		if err := c.call("GET", "/v1/operations/"+op.ID+"?wait=30s", nil, &op); err != nil {
			return err
		}
	}
}

// act starts an operation and waits for its end.
func (c *client) act(method, path string, body any) (operation, error) {
	var op operation
	if err := c.call(method, path, body, &op); err != nil {
		return op, err
	}
	return op, c.await(op)
}

var baseTemplate = map[string]any{"template": "base"}

func (c *client) create() (string, error) {
	op, err := c.act("POST", "/v1/sandboxes", baseTemplate)
	return op.SandboxID, err
}

func (c *client) remove(sandbox string) error {
	_, err := c.act("DELETE", "/v1/sandboxes/"+sandbox, nil)
	return err
}

func (c *client) session(sandbox string, argv ...string) (session, error) {
	var s session
	err := c.call("POST", "/v1/sandboxes/"+sandbox+"/sessions", map[string]any{"argv": argv, "start": true}, &s)
	return s, err
}

// event is one of a session's.
type event struct {
	id, name string
	data     []byte // JSON; good until the next one is read
}

// attach reads a session's events until it ends or take says no.
func (c *client) attach(ctx context.Context, s session, query string, take func(event) bool) error {
	request, err := http.NewRequestWithContext(ctx, "GET", s.AttachURL+query, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.AttachToken)
	request.Header.Set("Accept", "text/event-stream")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return fmt.Errorf("attach: %s: %s", response.Status, text)
	}
	reader := bufio.NewReaderSize(response.Body, 16<<10)
	var e event
	for {
		line, err := readLine(reader)
		if err != nil {
			return err
		}
		switch {
		case len(line) == 0:
			if e.name == "error" {
				return errors.New("error event: " + string(e.data))
			}
			if e.name != "" && (!take(e) || e.name == "exit") {
				return nil
			}
			e = event{}
		case bytes.HasPrefix(line, []byte("event:")):
			e.name = strings.TrimSpace(string(line[6:]))
		case bytes.HasPrefix(line, []byte("id:")):
			e.id = strings.TrimSpace(string(line[3:]))
		case bytes.HasPrefix(line, []byte("data:")):
			e.data = append(e.data[:0], bytes.TrimSpace(line[5:])...)
		}
	}
}

func readLine(reader *bufio.Reader) ([]byte, error) {
	line, err := reader.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := append([]byte(nil), line...)
		rest, err := reader.ReadBytes('\n')
		return bytes.TrimRight(append(long, rest...), "\r\n"), err
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// first runs a command and gives the time until its first output was here.
func (c *client) first(sandbox string, argv ...string) (time.Duration, error) {
	began := time.Now()
	s, err := c.session(sandbox, argv...)
	if err != nil {
		return 0, err
	}
	var took time.Duration
	err = c.attach(context.Background(), s, "", func(e event) bool {
		if e.name == "stdout" && took == 0 {
			took = time.Since(began)
		}
		return true
	})
	if err == nil && took == 0 {
		err = errors.New("no output came")
	}
	return took, err
}

func (c *client) hello(sandbox string) (time.Duration, error) {
	return c.first(sandbox, "echo", "hi")
}

// createToFirst gives the time from nothing to the first output.
func (c *client) createToFirst() (string, time.Duration, error) {
	began := time.Now()
	sandbox, err := c.create()
	if err != nil {
		return sandbox, 0, err
	}
	up := time.Since(began)
	first, err := c.hello(sandbox)
	return sandbox, up + first, err
}

var base64Field = []byte(`"base64":"`)

// read gives the bytes per second of a session's output.
func (c *client) read(sandbox string, kib int) (float64, error) {
	began, got := time.Now(), int64(0)
	s, err := c.session(sandbox, dd("", kib)...)
	if err != nil {
		return 0, err
	}
	err = c.attach(context.Background(), s, "?encoding=base64", func(e event) bool {
		if at := bytes.Index(e.data, base64Field); e.name == "stdout" && at >= 0 {
			text := e.data[at+len(base64Field):]
			text = text[:bytes.IndexByte(text, '"')]
			got += int64(len(text)/4*3 - bytes.Count(text[max(0, len(text)-2):], []byte("=")))
		}
		return true
	})
	if err == nil && got != int64(kib)<<10 {
		err = fmt.Errorf("%d of %d bytes came", got, int64(kib)<<10)
	}
	return float64(got) / time.Since(began).Seconds(), err
}

func (c *client) file(sandbox, path string) string {
	return c.data + "/v1/sandboxes/" + sandbox + "/files?path=" + url.QueryEscape(path)
}
