package respapi

import (
	"time"

	"github.com/lately-go/lately/internal/resp"
)

// How long a client may take.
const (
	greetTime   = 10 * time.Second // until its first command, and until it is authenticated
	partialTime = 10 * time.Second // from the first byte of a command until its last
	multiTime   = 10 * time.Second // from MULTI to EXEC
	writeTime   = 4 * time.Second  // to receive what it is sent
	quietTime   = 100 * time.Millisecond
	lingerTime  = 500 * time.Millisecond
)

// What a client may send.
const (
	maxFields        = 64       // of an event
	maxSubscriptions = 128      // of a connection
	maxChannel       = 256      // bytes of the name of a channel, or of a pattern
	maxLogins        = 3        // unknown tokens on one connection
	maxListed        = 1000     // bans or keys in a reply
	maxClientText    = 64       // bytes of the name of a client, and of its library
	maxQueued        = 1 << 20  // bytes of the commands of a transaction
	lingerBytes      = 64 << 10 // that are read from a client which is being closed
	subscriberBuffer = 64 << 10 // bytes that the kernel keeps for a subscriber that does not read
)

// The limits of commands before and after a client has authenticated.
var (
	unknownLimits = resp.Limits{Bulk: 1024, Args: 16, Inline: 1024, Command: 4096, Buffer: 1024}
	knownLimits   = resp.Limits{}
	// batchLimits are knownLimits where the decisions of one read are made together: 100
	// commands fit the first read.
	batchLimits = resp.Limits{Buffer: 8 << 10}
)
