package api_test

import (
	"encoding/json"
	"fmt"

	"github.com/lately-go/lately/api"
)

// A key that is not UTF-8 is encoded in base64.
func ExampleKey() {
	for _, key := range []api.Key{api.KeyOf("192.0.2.1", "ada"), api.KeyOf("\xff")} {
		b, _ := json.Marshal(api.RuleKey{Rule: "login", Key: key})
		fmt.Println(string(b))
	}
	// Output:
	// {"rule":"login","key":["192.0.2.1","ada"]}
	// {"rule":"login","key_base64":["/w=="]}
}
