package replay_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
)

var clfPattern = regexp.MustCompile(`^(\S+) - - \[(.*)\] "(.*)" (\d+) (\d+) "`)

// generated returns a generated log in format clf, json-nginx or messages. Some of its
// lines are late, and some of its paths have bytes of 0x80 and above, not all UTF-8.
func generated(t testing.TB, rnd *rand.Rand, format string, c accesslogtest.Config) []byte {
	t.Helper()
	c.Seed = rnd.Uint64()
	var log bytes.Buffer
	must.Get(accesslogtest.Write(&log, c))(t)
	var lines []string
	for line := range strings.Lines(log.String()) {
		if m := clfPattern.FindStringSubmatch(line); m != nil {
			line = convertedLine(t, format, line, m)
		}
		lines = append(lines, strings.Replace(line, " /tea ", pick(rnd, " /tea ", " /th\xe9 ", " /\xe8\x8c\xb6 "), 1))
	}
	for i := 0; i < len(lines); i += 1 + rnd.IntN(30) {
		late := lines[i]
		lines = slices.Insert(slices.Delete(lines, i, i+1), min(i+rnd.IntN(60), len(lines)-1), late)
	}
	return []byte(strings.Join(lines, ""))
}

// convertedLine returns the line of clfPattern m in a format.
func convertedLine(t testing.TB, format, line string, m []string) string {
	switch client, at, request := m[1], m[2], m[3]; format {
	case "json-nginx":
		request = strings.ReplaceAll(request, `\x`, `\u00`)
		return fmt.Sprintf(`{"remote_addr":"%s","time_local":"%s","request":"%s","status":"%s","body_bytes_sent":"%s"}`+"\n", client, at, request, m[4], m[5])
	case "messages":
		when := must.Get(time.Parse("02/Jan/2006:15:04:05 -0700", at))(t)
		message := "Failed password for root from " + client + " port 22 ssh2"
		if strings.Contains(request, "/static/") {
			message = "Accepted publickey for root from " + client + " port 22 ssh2"
		}
		return when.Format("Jan _2 15:04:05") + " gate sshd[7]: " + message + "\n"
	}
	return line
}
