//go:build !race

package ban

const underRace = false
