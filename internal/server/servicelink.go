package server

import "regexp"

// serviceLink reports whether Kubernetes sets the variable in each pod beside a
// Service whose name is "lately" or begins with "lately-". The values are compared,
// too: LATELY_PORT=8080 is somebody's mistake, LATELY_PORT=tcp://10.96.0.7:7379 is not.
func serviceLink(name, value string) bool {
	for _, link := range []struct{ name, value string }{
		{`SERVICE_HOST`, `[0-9a-fA-F.:]+`},
		{`SERVICE_PORT(_[A-Z0-9_]+)?`, `[0-9]+`},
		{`PORT(_[0-9]+_(TCP|UDP|SCTP))?`, `(tcp|udp|sctp)://[0-9a-fA-F.:\[\]]+`},
		{`PORT_[0-9]+_(TCP|UDP|SCTP)_PROTO`, `tcp|udp|sctp`},
		{`PORT_[0-9]+_(TCP|UDP|SCTP)_PORT`, `[0-9]+`},
		{`PORT_[0-9]+_(TCP|UDP|SCTP)_ADDR`, `[0-9a-fA-F.:]+`},
	} {
		if regexp.MustCompile(`^LATELY_([A-Z0-9_]+_)?(`+link.name+`)$`).MatchString(name) &&
			regexp.MustCompile(`^(`+link.value+`)$`).MatchString(value) {
			return true
		}
	}
	return false
}
