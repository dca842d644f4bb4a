package secret_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/store/secret"
)

func TestKeys(t *testing.T) {
	s := secret.New()
	id, field := s.Key("id"), s.Key("field")
	if *id == *field || *id == secret.Key(s.Value()) || s.Key("id") != id {
		t.Error("labels have one key, the key of a label changes, or it is the secret")
	}
	other := secret.New()
	if other.Value() == s.Value() {
		t.Error("two secrets have one value")
	}
	other.Set(s.Value())
	if *other.Key("id") != *id {
		t.Error("secrets of the same value have different keys")
	}
	s.Set(s.Value())
	if s.Key("id") != id {
		t.Error("the same value replaced the keys")
	}
	s.Set(secret.New().Value())
	if *s.Key("id") == *id {
		t.Error("another value kept the keys")
	}
}

// TestKey compares with HMAC-SHA256 of RFC 4231, test case 2, made longer by zeros, which HMAC adds itself.
func TestKey(t *testing.T) {
	s := secret.New()
	var v secret.Value
	copy(v[:], "Jefe")
	s.Set(v)
	const want = "\x5b\xdc\xc1\x46\xbf\x60\x75\x4e\x6a\x04\x24\x26\x08\x95\x75\xc7\x5a\x00\x3f\x08\x9d\x27\x39\x83\x9d\xec\x58\xb9\x64\xec\x38\x43"
	if got := string(s.Key("what do ya want for nothing?")[:]); got != want {
		t.Errorf("%x, want %x", got, want)
	}
}

func TestConcurrentKeys(t *testing.T) {
	s := secret.New()
	var group sync.WaitGroup
	keys := make([]*secret.Key, 8)
	for i := range keys {
		group.Go(func() { keys[i] = s.Key("id") })
	}
	group.Wait()
	for _, k := range keys {
		if k != keys[0] {
			t.Fatal("one label has two keys")
		}
	}
}

func TestText(t *testing.T) {
	v := secret.New().Value()
	text := v.Text()
	for _, whole := range []string{text, text + "\n"} {
		if got, err := secret.Parse(whole); got != v || err != nil {
			t.Errorf("%q: %v", whole, err)
		}
	}
	for i := range text {
		for _, digit := range "0123456789abcdefgG\n " {
			if other := text[:i] + string(digit) + text[i+1:]; other != text && !strings.EqualFold(other, text) {
				if got, err := secret.Parse(other); err == nil || got != (secret.Value{}) {
					t.Fatalf("digit %d as %q: %v", i, digit, err)
				}
			}
		}
	}
	for _, bad := range []string{"", "\n", text[:len(text)-2], text + "00", text + "\n\n", "00"} {
		if _, err := secret.Parse(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
