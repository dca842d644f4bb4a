package api

// A Code is the reason of a failure in a word. Newer servers may have other codes.
type Code string

// The codes.
const (
	NoRule    Code = "NORULE"    // unknown rule
	BadArg    Code = "BADARG"    // an argument is invalid
	NoAuth    Code = "NOAUTH"    // the request has no token
	WrongPass Code = "WRONGPASS" // the token is unknown
	NoPerm    Code = "NOPERM"    // the role of the token does not suffice
	NoFeed    Code = "NOFEED"    // the feed is not open in this session: open it
	BadID     Code = "BADID"     // the id is not from this server, or of another kind
	Expired   Code = "EXPIRED"   // the time of the reservation is over: it is charged as reserved
	Overload  Code = "OVERLOAD"  // not enough memory or time; try again later
	Conflict  Code = "CONFLICT"  // it would do more than requested
	Failed    Code = "ERR"       // anything else
)

// A Problem is a problem document (RFC 9457): the answer to a failed request.
type Problem struct {
	Type   string    `json:"type"`
	Title  string    `json:"title"`
	Status int       `json:"status"`
	Detail string    `json:"detail"`
	Code   Code      `json:"code"`
	Errors []Mistake `json:"errors,omitempty" doc:"the mistakes of a rules file"`
}
