package server

import (
	"reflect"
	"strings"
	"testing"
)

// Kubernetes sets variables in every pod beside a Service. Those of a Service named "lately" or "lately-..." look like
// settings, and are ignored; other unknown variables stay errors.
func TestServiceLinks(t *testing.T) {
	ignored := `LATELY_SERVICE_HOST=10.96.12.7
LATELY_SERVICE_HOST=fd00:10:96::7
LATELY_SERVICE_PORT=7379
LATELY_SERVICE_PORT_RESP=7379
LATELY_SERVICE_PORT_HTTP_CONSOLE=7380
LATELY_PORT=tcp://10.96.12.7:7379
LATELY_PORT=tcp://[fd00:10:96::7]:7379
LATELY_PORT_7379_TCP=tcp://10.96.12.7:7379
LATELY_PORT_7379_TCP_PROTO=tcp
LATELY_PORT_7379_TCP_PORT=7379
LATELY_PORT_7379_TCP_ADDR=10.96.12.7
LATELY_PORT_53_UDP=udp://10.96.12.7:53
LATELY_HTTP_SERVICE_HOST=10.96.12.8
LATELY_HTTP_PORT=tcp://10.96.12.8:7380
LATELY_HTTP_PORT_7380_TCP_ADDR=10.96.12.8`
	for line := range strings.SplitSeq(ignored, "\n") {
		var c Config
		if err := ReadEnvironment(&c, []string{line}); err != nil || !reflect.DeepEqual(c, Config{}) {
			t.Errorf("%s: %v, %+v", line, err, c)
		}
	}
	for _, line := range []string{
		"LATELY_PORT=7379", "LATELY_HTTP_PORT=7380", "LATELY_HOSTS=a.example", "LATELY_SERVICE=1", "LATELY_SERVICE_HOST=",
		"LATELY_SERVICE_PORT=http", "LATELY_PORT_7379_TCP_HOST=10.96.12.7", "LATELY_PORT_X_TCP=tcp://10.96.12.7:7379", "LATELY_=",
	} {
		if err := ReadEnvironment(new(Config), []string{line}); err == nil || !strings.Contains(err.Error(), "unknown variable "+line[:strings.Index(line, "=")]+": must be ") {
			t.Errorf("%s: got %v; want that it is unknown", line, err)
		}
	}
	// A link never takes the place of a setting.
	var c Config
	if err := ReadEnvironment(&c, []string{"LATELY_PORT=tcp://10.96.12.7:7379", "LATELY_HTTP=127.0.0.1:8080", "LATELY_DATA="}); err != nil || !reflect.DeepEqual(c, Config{HTTP: "127.0.0.1:8080"}) {
		t.Errorf("%v, %+v", err, c)
	}
}
