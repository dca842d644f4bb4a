// Package migrate reads the jails of fail2ban and writes them as a rules file. It guesses
// nothing: what a rules file cannot express, or expresses differently, is a [Note] with its
// line.
//
//	result := migrate.Fail2ban(migrate.Source{Name: "jail.local", Data: data})
//	os.Stdout.Write(result.Rules)
//	for _, note := range result.Notes { ... }
//
// The rules file is valid for any input, and its comments name the line that each rule is
// from.
package migrate
