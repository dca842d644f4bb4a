package deptest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/lately-go/lately/internal/test/must"
)

// A source is one Go file of the module.
type source struct {
	name    string // slash-separated, from the root of the module
	folder  string // the table's name of its package
	test    bool
	imports []string
	inits   int      // functions named init
	bare    []string // exported names without a doc comment
	text    string
}

// load reads every Go file of the module whose root is fsys, whatever its build
// constraints are. It leaves out modules inside the module and the folders that
// the go command ignores: testdata and those that begin with . or _.
func load(fsys fs.FS) ([]source, error) {
	var files []source
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && ignored(fsys, name):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || ignoredName(path.Base(name)):
			return nil
		}
		f, err := parse(fsys, name)
		files = append(files, f)
		return err
	})
	return files, err
}

func ignored(fsys fs.FS, dir string) bool {
	if ignoredName(path.Base(dir)) || path.Base(dir) == "testdata" {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

func ignoredName(base string) bool {
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

func parse(fsys fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return source{}, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	f := source{
		name:   name,
		folder: path.Dir(name),
		test:   strings.HasSuffix(name, "_test.go"),
		text:   string(text),
	}
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, fmt.Errorf("%s: %w", name, err)
		}
		f.imports = append(f.imports, p)
	}
	for _, decl := range file.Decls {
		f.look(decl)
	}
	return f, nil
}

// look counts init functions and finds exported names without a doc comment. A
// group of constants or variables may share one comment, and a comment may
// stand at the end of the line. Methods of unexported types need none.
func (f *source) look(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.Name == "init" {
			f.inits++
		}
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || receiver(d).IsExported()) {
			f.bare = append(f.bare, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					f.bare = append(f.bare, s.Name.Name)
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					f.bare = append(f.bare, s.Names[0].Name)
				}
			}
		}
	}
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) *ast.Ident {
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr: // T[P]
			e = x.X
		case *ast.IndexListExpr: // T[P, Q]
			e = x.X
		case *ast.Ident:
			return x
		default:
			return &ast.Ident{Name: "_"}
		}
	}
}

// root is the checkout, seen from this folder.
const root = "../../.."

// loaded is the files of this module, which several tests look at.
var loaded = sync.OnceValues(func() ([]source, error) { return load(os.DirFS(root)) })

func loadModule(t *testing.T) []source {
	t.Helper()
	files := must.Get(loaded())(t)
	if !slices.ContainsFunc(files, func(f source) bool { return f.name == "internal/test/deptest/doc.go" }) {
		t.Fatalf("%d files were found below %s, but not this one", len(files), root)
	}
	return files
}

// sources are invented files: name to text.
type sources map[string]string

func mustLoad(t *testing.T, s sources) []source {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range s {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	files := must.Get(load(fsys))(t)
	return files
}
