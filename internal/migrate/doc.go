// Package migrate reads the limits and bans of other tools and writes them as a rules file.
// It guesses nothing: what a rules file cannot express, or expresses differently, is a
// [Note] with its line.
//
//	result := migrate.Nginx(migrate.Source{Name: "nginx.conf", Data: data})
//	os.Stdout.Write(result.Rules)
//	for _, note := range result.Notes { ... }
//
// Each tool has a function. The rules file is valid for any input, and its comments name
// the line that each rule is from.
package migrate
