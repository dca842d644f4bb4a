package latelygrpc_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/lately-go/lately/latelygrpc"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A server that answers each client twice a minute, and a client that reads from
// the refusal how long it has to wait.
func Example() {
	key, err := match.NewKey(match.Fold{}, match.Client.String())
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name:   "per-client",
		Key:    key,
		Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}},
	})
	if err != nil {
		log.Fatal(err)
	}
	i, err := latelygrpc.New(limiter, latelygrpc.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(i.Unary), grpc.ChainStreamInterceptor(i.Stream))
	healthpb.RegisterHealthServer(server, health.NewServer())

	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(lis)
	defer server.Stop()

	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	for range 3 {
		_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
		s := status.Convert(err)
		fmt.Print(s.Code())
		for _, detail := range s.Details() {
			if retry, ok := detail.(*errdetails.RetryInfo); ok {
				fmt.Print(", try again in ", retry.GetRetryDelay().AsDuration().Round(time.Minute))
			}
		}
		fmt.Println()
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted, try again in 1m0s
}
