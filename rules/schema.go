package rules

import _ "embed"

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the rules file, for editors. It knows which
// keys there are and the form of their values; what it cannot say, such as that
// names are unique, only Parse checks.
func Schema() string { return schema }
