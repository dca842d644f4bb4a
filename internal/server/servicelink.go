package server

import (
	"regexp"
	"strings"
)

// serviceLink matches the variables, NAME=VALUE, that Kubernetes sets in each pod for a
// Service whose name is "lately" or begins with "lately-". The value decides as well:
// LATELY_PORT=8080 is a mistake of a user, LATELY_PORT=tcp://10.96.0.7:7379 is not.
var serviceLink = regexp.MustCompile(`^LATELY_([A-Z0-9_]+_)?(` + strings.Join([]string{
	`SERVICE_HOST=[0-9a-fA-F.:]+`,
	`SERVICE_PORT(_[A-Z0-9_]+)?=[0-9]+`,
	`PORT(_[0-9]+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://[0-9a-fA-F.:\[\]]+`,
	`PORT_[0-9]+_(TCP|UDP|SCTP)_PROTO=(tcp|udp|sctp)`,
	`PORT_[0-9]+_(TCP|UDP|SCTP)_PORT=[0-9]+`,
	`PORT_[0-9]+_(TCP|UDP|SCTP)_ADDR=[0-9a-fA-F.:]+`,
}, "|") + `)$`)
