// Package figures reads what `go test -bench` prints, several passes of it, and
// answers with medians and with ratios taken within a pass.
package figures
