package intake_test

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

var hashedSources = []match.Source{
	{Field: "api_key", Header: "X-API-Key", Hash: true}, {Field: "token", Query: "to ken", Hash: true}, {Field: "user", Hash: true}, {Field: "tenant"},
}

func newIntake(t testing.TB, key byte) *intake.Intake {
	t.Helper()
	in := intake.New(hashedSources, [32]byte{key})
	if in == nil {
		t.Fatal("no intake for hashed fields")
	}
	return in
}

func TestIntakeOfEvents(t *testing.T) {
	in := newIntake(t, 1)
	var e match.Event
	var d intake.Digests
	fill := func() {
		e.Reset()
		e.SetNamedString("api_key", "s3cret")
		e.SetNamedString("tenant", "acme")
		e.SetString(match.User, "ada")
		e.SetString(match.Query, "a=1&to+ken=s3cret&to%20ken=%73&token=x&to+ken=")
	}
	fill()
	in.Event(&e, &d)
	digest := string(e.GetNamed("api_key"))
	if !intake.IsDigest(digest) || len(digest) != len("hmac-")+26 || digest != in.Digest("s3cret") {
		t.Errorf("the digest is %q", digest)
	}
	if got := string(e.GetNamed("user")); got != in.Digest("ada") {
		t.Errorf("the user is %q", got)
	}
	if got := string(e.GetNamed("tenant")); got != "acme" {
		t.Errorf("a field that is not hashed is %q", got)
	}
	if got, want := string(e.Get(match.Query)), "a=1&to+ken="+digest+"&to%20ken="+in.Digest("s")+"&token=x&to+ken="; got != want {
		t.Errorf("the query is %q; want %q", got, want)
	}
	in.Event(&e, &d) // again, as for the second event of a line
	if got := string(e.GetNamed("api_key")); got != digest {
		t.Errorf("the digest was digested: %q", got)
	}
	fill()
	e.SetNamedString("api_key", digest) // a client that sends a digest
	in.Event(&e, &d)
	if got := string(e.GetNamed("api_key")); got == digest || !intake.IsDigest(got) {
		t.Errorf("a digest that a client sends is %q", got)
	}
	fill()
	e.SetNamedString("api_key", digest)
	in.KeptEvent(&e, &d)
	if got := string(e.GetNamed("api_key")); got != digest || string(e.GetNamed("user")) != in.Digest("ada") {
		t.Errorf("the digest of a kept event is %q", got)
	}
	e.Reset()
	e.SetNamedString("api_key", intake.Ambiguous)
	if in.Event(&e, &d); string(e.GetNamed("api_key")) != intake.Ambiguous {
		t.Errorf("an ambiguous value is %q", e.GetNamed("api_key"))
	}
	if other := newIntake(t, 2).Digest("s3cret"); other == digest {
		t.Error("two keys have one digest")
	}
}

func TestIntakeOfKeys(t *testing.T) {
	in := newIntake(t, 1)
	digest := in.Digest("s3cret")
	for _, c := range []struct {
		fields         []string
		values         []string
		strict, listed []string
	}{
		{[]string{"api_key"}, []string{"s3cret"}, []string{digest}, []string{digest}},
		{[]string{"api_key"}, []string{digest}, []string{in.Digest(digest)}, []string{digest}},
		{[]string{"tenant", "api_key"}, []string{"s3cret", "s3cret"}, []string{"s3cret", digest}, []string{"s3cret", digest}},
		{[]string{"api_key | client"}, []string{"api_key:s3cret"}, []string{"api_key:" + digest}, []string{"api_key:" + digest}},
		{[]string{"api_key | client"}, []string{"api_key:" + digest}, []string{"api_key:" + in.Digest(digest)}, []string{"api_key:" + digest}},
		{[]string{"api_key | client"}, []string{"client:s3cret"}, []string{"client:s3cret"}, []string{"client:s3cret"}},
		{[]string{"client"}, []string{"s3cret"}, []string{"s3cret"}, []string{"s3cret"}},
		{[]string{"api_key"}, []string{"a", "b"}, []string{"a", "b"}, []string{"a", "b"}}, // Join rejects it
		{[]string{"api_key"}, []string{""}, []string{""}, []string{""}},
	} {
		k := match.MustKey(c.fields...)
		for listed, want := range map[bool][]string{false: c.strict, true: c.listed} {
			change, got := in.Values, append([]string{}, c.values...)
			if listed {
				change = in.ListedValues
			}
			if err := change(k, got); err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("%v %v, listed %t: %v, %v; want %v", c.fields, c.values, listed, got, err, want)
			}
		}
	}
	k := match.MustKey("api_key | client")
	if err := in.Values(k, []string{"s3cret"}); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "must be api_key:VALUE or client:VALUE") {
		t.Errorf("a value without the name of its field: %v", err)
	}
	other := match.MustKey("tenant", "client")
	if !in.Hashes(k) || in.Hashes(other) {
		t.Error("Hashes is wrong")
	}
}

// An event's key and the key of its values are the same, as without hashing.
func TestIntakeAgrees(t *testing.T) {
	in, k := newIntake(t, 7), match.MustKey("client", "api_key")
	var e match.Event
	var d intake.Digests
	e.SetString(match.Client, "192.0.2.1")
	e.SetNamedString("api_key", "s3cret")
	in.Event(&e, &d)
	of, _ := k.Append(nil, &e)
	values := []string{"192.0.2.1", "s3cret"}
	must.Do(t, in.Values(k, values))
	if joined, err := k.Join(nil, values...); err != nil || string(joined) != string(of) {
		t.Errorf("%q, %v; want %q", joined, err, of)
	}
}

// Without hashed fields nothing is changed.
func TestNoIntake(t *testing.T) {
	in := intake.New([]match.Source{{Field: "a", Header: "X-A"}}, [32]byte{})
	if in != nil {
		t.Fatal("an intake without hashed fields")
	}
	var e match.Event
	var d intake.Digests
	e.SetNamedString("a", "x")
	k := match.MustKey("a")
	if in.Event(&e, &d); string(e.GetNamed("a")) != "x" || in.Values(k, []string{"x"}) != nil || in.Digest("x") != "" || in.Hashes(k) {
		t.Error("a nil intake changes something")
	}
}

func TestIsDigest(t *testing.T) {
	for v, want := range map[string]bool{
		"hmac-abcdefghijklmnopqrstuvwxyz": true, "hmac-abcdefghijklmnopqrstuvwxy": false, "hmac-abcdefghijklmnopqrstuvwxy1": false,
		"abcdefghijklmnopqrstuvwxyzabcde": false, "": false, "hmac-ABCDEFGHIJKLMNOPQRSTUVWXYZ": false,
	} {
		if intake.IsDigest(v) != want {
			t.Errorf("%q: %t", v, !want)
		}
	}
}

// Events that lack a shared field count together; a shared field that is hashed is digested if the event has it.
func TestSharedFields(t *testing.T) {
	in := intake.New([]match.Source{{Field: "tenant", Share: true}, {Field: "api_key", Share: true, Hash: true}, {Field: "plan"}}, [32]byte{1})
	var e match.Event
	var d intake.Digests
	in.Event(&e, &d)
	if a, b, c := string(e.GetNamed("tenant")), string(e.GetNamed("api_key")), e.GetNamed("plan"); a != intake.Missing || b != intake.Missing || c != nil {
		t.Errorf("an event without fields has %q, %q and %q", a, b, c)
	}
	e.Reset()
	e.SetNamedString("tenant", "acme")
	e.SetNamedString("api_key", "s3cret")
	in.Event(&e, &d)
	if a, b := string(e.GetNamed("tenant")), string(e.GetNamed("api_key")); a != "acme" || b != in.Digest("s3cret") {
		t.Errorf("an event with the fields has %q and %q", a, b)
	}
	if only := intake.New([]match.Source{{Field: "tenant", Share: true}}, [32]byte{}); only == nil || only.Digest("x") != "" {
		t.Error("an intake without hashed fields has digests")
	}
}
