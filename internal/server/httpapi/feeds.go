package httpapi

import (
	"errors"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/match"
)

// openFeed begins a session of a follower, which then goes on where the answer says.
func openFeed(c *call, req *api.FeedOpening) (api.Feed, error) {
	feed, err := c.s.config.Feeds.Open(req, time.Now())
	if err != nil {
		return feed, feedError(err)
	}
	c.audit("feed opened", "feed", req.Feed, "new", len(feed.State) == 0)
	return feed, nil
}

// judgeFeed judges the events of a log that a follower has read, as those of the logs that the
// server follows.
func judgeFeed(c *call, batch *api.FeedBatch) (result api.FeedResult, err error) {
	err = c.s.config.Feeds.Judge(batch, time.Now(), c.session.Receive, func(ev *match.Event) {
		if len(c.s.config.TrustedProxies) > 0 {
			c.s.identity.SetClient(ev)
		}
		d := c.session.CheckLogged(ev)
		result.Events++
		if !d.Allowed {
			result.Refused++
		}
		if d.Started {
			result.Bans++
		}
	})
	return result, feedError(err)
}

// feedError returns err, of feeds, as what is answered.
func feedError(err error) error {
	code := api.BadArg
	switch {
	case err == nil:
		return nil
	case errors.Is(err, follow.ErrFeedClosed):
		code = api.NoFeed
	case errors.Is(err, follow.ErrFeedTaken):
		code = api.Conflict
	case errors.Is(err, follow.ErrFeedsFull):
		code = api.Overload
	}
	return apierror.New(code, "%v", err)
}

// followed returns the logs that this server and the followers that send to it follow.
func (s *Server) followed() []api.FollowedLog {
	var own []api.FollowedLog
	if s.config.Logs != nil {
		own = s.config.Logs.Stats()
	}
	return append(own, s.config.Feeds.Logs(time.Now())...)
}
