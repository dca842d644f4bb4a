package api

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestKey encodes and decodes keys: UTF-8 as key, anything else as key_base64 instead.
func TestKey(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   string
	}{
		{[]string{"192.0.2.1"}, `{"key":["192.0.2.1"]}`},
		{[]string{"", "ada\t"}, `{"key":["","ada\t"]}`},
		{[]string{"a\ufffd"}, "{\"key\":[\"a\ufffd\"]}"},
		{[]string{"a\xff", "b"}, `{"key_base64":["Yf8=","Yg=="]}`},
		{[]string{"\xed\xa0\x80"}, `{"key_base64":["7aCA"]}`},
	} {
		b, err := json.Marshal(KeyOf(tt.values...))
		if err != nil || string(b) != tt.want {
			t.Errorf("%q: %s, %v, want %s", tt.values, b, err, tt.want)
		}
		var k Key
		if err := json.Unmarshal(b, &k); err != nil || !reflect.DeepEqual(k.Values(), tt.values) {
			t.Errorf("%s: %q, %v, want %q", b, k.Values(), err, tt.values)
		}
	}
}

// TestTexts reads one string or a list, and nothing else.
func TestTexts(t *testing.T) {
	for text, want := range map[string]Texts{`"a"`: {"a"}, `["a","b"]`: {"a", "b"}, `[]`: nil, `null`: nil, `1`: nil, `{}`: nil, `[1]`: nil} {
		var got Texts
		err := json.Unmarshal([]byte(text), &got)
		if text == "null" {
			continue // encoding/json leaves the member as it is
		}
		if (err == nil) != (want != nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "key: "+text+": must be ") {
			t.Errorf("%s: error %q", text, err)
		}
	}
}

// TestMillis rounds up, and saturates.
func TestMillis(t *testing.T) {
	for d, want := range map[time.Duration]Millis{0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, -5: -1, math.MaxInt64: -1, math.MaxInt64 - 1: 9223372036855} {
		if got := MillisOf(d); got != want {
			t.Errorf("MillisOf(%d): %d, want %d", d, got, want)
		}
	}
	if got := Millis(math.MaxInt64).Duration(); got < 290*365*24*time.Hour {
		t.Errorf("the longest: %v", got)
	}
	if got := Millis(1500).Duration(); got != 1500*time.Millisecond {
		t.Errorf("1500: %v", got)
	}
}
