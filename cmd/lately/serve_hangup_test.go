package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A SIGHUP that comes while the server starts is no end: the rules are read again
// when it has started.
func TestServeHangupAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml") // a pipe: who reads it waits for what is written
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Skip(err)
	}
	var log lines
	cmd := exec.Command("lately", "serve", "--resp", "127.0.0.1:0", "--http", "off", "--watch", "never", "--rules", path)
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // for a signal that would end it
	pipe.WriteString("version: 1\n")
	pipe.Close()
	if said := bufio.NewScanner(out); !said.Scan() {
		t.Fatalf("it did not start: %v\n%s", cmd.Wait(), log.String())
	}
	if err := os.WriteFile(path, []byte("version: 1\n"), 0); err != nil { // waits for one who reads
		t.Fatal(err)
	}
	for range 2000 {
		if strings.Contains(log.String(), "reloaded") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || !strings.Contains(log.String(), "reloaded") {
		t.Errorf("it ended with %v\n%s", err, log.String())
	}
}
