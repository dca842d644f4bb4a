package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// mostNames is how many exported names, fields not counted, a library package may have. A
// name that users need is worth a larger number here; what only this repository uses belongs
// in an internal package.
var mostNames = map[string]int{
	"accesslog":   31,
	"api":         141,
	"client":      71,
	"hotkey":      45,
	"latelygrpc":  17,
	"latelyhttp":  34,
	"latelyprom":  5,
	"latelyredis": 49,
	"match":       45,
	"ratelimit":   94,
	"replay":      78,
	"rules":       18,
	"sampled":     20,
	"window":      108,
}

// exportedNames returns the number of exported types, functions, methods, constants and
// variables in a Go file, and the number of fields of its exported structs.
func exportedNames(t *testing.T, text string) (names, fields int) {
	t.Helper()
	file := must.Get(parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution))(t)
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || receiver(d).IsExported()) {
				names++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					names += exported(s.Names)
				case *ast.TypeSpec:
					n, m := namesOfType(s)
					names, fields = names+n, fields+m
				}
			}
		}
	}
	return names, fields
}

// namesOfType counts an exported type with the methods of an interface, and its fields.
func namesOfType(s *ast.TypeSpec) (names, fields int) {
	if !s.Name.IsExported() {
		return 0, 0
	}
	switch x := s.Type.(type) {
	case *ast.StructType:
		for _, f := range x.Fields.List {
			fields += exported(f.Names)
		}
	case *ast.InterfaceType:
		for _, m := range x.Methods.List {
			names += exported(m.Names)
		}
	}
	return names + 1, fields
}

func exported(names []*ast.Ident) (n int) {
	for _, name := range names {
		if name.IsExported() {
			n++
		}
	}
	return n
}

// With -v it prints the table.
func TestNames(t *testing.T) {
	names, fields := map[string]int{}, map[string]int{}
	for _, f := range loadModule(t) {
		if _, ok := mostNames[f.folder]; ok && !f.test {
			n, m := exportedNames(t, f.text)
			names[f.folder], fields[f.folder] = names[f.folder]+n, fields[f.folder]+m
		}
	}
	folders := make([]string, 0, len(mostNames))
	for folder := range mostNames {
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	for _, folder := range folders {
		t.Logf("%-12s %4d names, %4d fields", folder, names[folder], fields[folder])
		if names[folder] == 0 {
			t.Errorf("%s: no exported name was found", folder)
		}
		if names[folder] > mostNames[folder] {
			t.Errorf("%s has %d exported names: must be at most %d, see mostNames", folder, names[folder], mostNames[folder])
		}
	}
}

func TestExportedNamesAreCounted(t *testing.T) {
	const text = `package a
type T struct{ A, B int; c int; T2 }
type t struct{ A int }
type I interface{ M(); m() }
const ( X = iota; Y; z )
var V, w int
func F() {}
func (T) M() {}
func (*T) m() {}
func (t) N() {}
func f() {}`
	if names, fields := exportedNames(t, text); names != 8 || fields != 2 {
		t.Errorf("%d names and %d fields: want 8 (T, I, I.M, X, Y, V, F, T.M) and 2 (T.A, T.B)", names, fields)
	}
}
