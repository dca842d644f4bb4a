package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/mailgun/gubernator/v2"
	"github.com/mailgun/holster/v4/tracing"
	"github.com/sirupsen/logrus"
)

// beNode serves until it is interrupted. It is what gubernator's own command starts,
// tracing as the environment has it included, but for the discovery of other nodes,
// which listens on all addresses.
func beNode() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := tracing.InitTracing(ctx, "github.com/mailgun/gubernator/v2", tracing.WithLevel(gubernator.GetTracingLevel()))
	if err != nil {
		return err
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	starting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	d, err := gubernator.SpawnDaemon(starting, gubernator.DaemonConfig{
		GRPCListenAddress: "127.0.0.1:0", HTTPListenAddress: "127.0.0.1:0", Logger: quiet,
	})
	if err != nil {
		return err
	}
	defer d.Close()
	addr := d.GRPCListeners[0].Addr().String()
	// IsOwner: it decides itself. Without it, it would ask itself over the network.
	d.V1Server.SetPeers([]gubernator.PeerInfo{{GRPCAddress: addr, IsOwner: true}})
	fmt.Println(addr)
	<-ctx.Done()
	return nil
}
