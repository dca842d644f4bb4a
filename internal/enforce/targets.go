package enforce

import "errors"

// Targets says what refuses banned clients, besides the server. Its zero value is nothing.
type Targets struct {
	// NFTables has the kernel drop packets of banned networks, in the network namespace
	// of this process.
	NFTables bool

	// DenyFile has a proxy read the banned networks from a file.
	DenyFile DenyFile

	// CrowdSec has CrowdSec's bouncers ask for bans.
	CrowdSec bool

	// Webhook sends bans and their ends to a URL.
	Webhook Webhook
}

// Any reports whether anything is set.
func (t *Targets) Any() bool { return *t != Targets{} }

// Validate returns an error that names the wrong setting. It reads no files.
func (t *Targets) Validate() error { return errors.Join(t.DenyFile.validate(), t.Webhook.validate()) }
