package accesslogtest_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/lately-go/lately/internal/test/accesslogtest"
)

func ExampleWrite() {
	var b bytes.Buffer
	truth, err := accesslogtest.Write(&b, accesslogtest.Config{Lines: 10_000})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Count(b.Bytes(), []byte("\n")), "lines")
	fmt.Println(truth.Flood.Clients[0], "sent", truth.Flood.Lines, "requests to", truth.Flood.Path)
	fmt.Println("from", truth.Flood.Begin, "to", truth.Flood.End.Format("15:04:05"))
	fmt.Println(truth.HotProduct.Path, "was wanted", truth.HotProduct.Lines, "times")
	// Output:
	// 10000 lines
	// 203.0.113.245 sent 600 requests to /login
	// from 2026-03-02 13:55:12 +0000 UTC to 14:00:12
	// /product/4711 was wanted 500 times
}
