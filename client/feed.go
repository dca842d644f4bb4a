package client

import (
	"context"

	"github.com/lately-go/lately/api"
)

// OpenFeed begins to send the events of logs that are followed on this machine, as lately follow --server
// does, and returns how far the server has judged them. It ends the sessions of this feed before.
func (c *Client) OpenFeed(ctx context.Context, o api.FeedOpening) (api.Feed, error) {
	return post[api.Feed](ctx, c, "/v1/feeds/open", o)
}

// SendFeed has the server judge a batch of events at their own times, and keep its state with
// what they have counted. After an error, it may have been judged: open the feed again, whose state says
// so. An [Error] of code [api.NoFeed] says that the server was restarted.
func (c *Client) SendFeed(ctx context.Context, b api.FeedBatch) (api.FeedResult, error) {
	return post[api.FeedResult](ctx, c, "/v1/feeds/events", b)
}
