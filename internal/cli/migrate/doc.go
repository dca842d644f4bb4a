// Package migrate reads the jails and filters of fail2ban and writes them as a rules file and files of
// patterns. It guesses nothing: what these cannot express, or express differently, is a [Note] with its
// line.
//
//	result := migrate.Fail2ban(os.DirFS("/etc/fail2ban"), "patterns")
//	os.Stdout.Write(result.Rules)
//	for _, note := range result.Notes { ... }
//
// The rules file is valid for any input, and its comments name the line that each rule is
// from.
package migrate
