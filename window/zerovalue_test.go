package window_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/window"
)

// TestZeroValues calls every method of every type whose zero value cannot work: it panics with a sentence about it, and
// counts nothing silently. Methods that return settings, or numbers of refused events, return zero.
func TestZeroValues(t *testing.T) {
	tells := []string{
		"Window", "Windows", "Spans", "Time", "Stats",
	}
	for _, v := range []any{
		new(window.Counter), new(window.Table), new(window.Sums), new(window.Rollup),
		new(window.Recent[int]),
		window.Reading{},
	} {
		of := reflect.TypeOf(v)
		for i := range of.NumMethod() {
			name := of.Method(i).Name
			problem, panicked := callZero(reflect.ValueOf(v).Method(i))
			switch {
			case slices.Contains(tells, name) && !(name == "Stats" && of == reflect.TypeFor[*window.Table]()):
				if panicked {
					t.Errorf("%v.%s panics: %v", of, name, problem)
				}
			case !panicked:
				t.Errorf("%v.%s does not panic", of, name)
			default:
				if text, ok := problem.(string); !ok || !strings.Contains(text, "constructor") {
					t.Errorf("%v.%s panics with %v", of, name, problem)
				}
			}
		}
	}
}

// callZero calls a method with arguments that would do something, ranges over its results, and returns its panic.
func callZero(method reflect.Value) (problem any, panicked bool) {
	defer func() {
		if problem = recover(); problem != nil {
			panicked = true
		}
	}()
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		in := method.Type().In(i)
		arg := reflect.Zero(in)
		switch in {
		case reflect.TypeFor[uint64]():
			arg = reflect.ValueOf(uint64(1))
		case reflect.TypeFor[time.Time]():
			arg = reflect.ValueOf(time.Now())
		case reflect.TypeFor[time.Duration]():
			arg = reflect.ValueOf(time.Second)
		}
		args = append(args, arg)
	}
	for _, out := range method.Call(args) {
		switch {
		case out.Kind() == reflect.Func && out.Type().CanSeq2():
			for range out.Seq2() {
			}
		case out.Kind() == reflect.Func && out.Type().CanSeq():
			for range out.Seq() {
			}
		}
	}
	return nil, false
}
