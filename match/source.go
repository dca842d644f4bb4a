package match

// A Source declares a field that is not well known: its name in rules, and the part of a
// request that contains its value. At most one of Header, Cookie, Bearer and Query may be
// set. Without any, the service, program or log that makes the event sets the field.
//
// A field that a request has several times with different values, or in a form that servers read
// differently, has the value "(ambiguous)", so that all such requests count as one key.
type Source struct {
	Field string

	Header string // the value of this header
	Cookie string // the value of this cookie
	Bearer bool   // the token after "Bearer" in the header Authorization
	Query  string // the value of this parameter in the query

	// Trusted means that clients cannot choose the value, because a proxy sets or checks it. Rules
	// files reject bans by a field that clients can choose.
	Trusted bool

	// Hash means that only keyed digests of the values are kept and shown.
	Hash bool

	// Share and Refuse apply to events without the field, under rules that count by it. With Share,
	// the field has the value "(missing)", so that such events count together. With Refuse, the
	// rule refuses them. With neither, the rule does not judge them. At most one may be set.
	Share, Refuse bool
}
