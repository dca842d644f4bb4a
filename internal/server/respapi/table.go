package respapi

import "github.com/lately-go/lately/internal/server/access"

// The groups of commands, as help shows them.
const (
	groupDecisions    = "decisions"
	groupCounters     = "counters"
	groupBans         = "bans"
	groupHot          = "hot keys"
	groupConnection   = "connection"
	groupPubSub       = "pubsub"
	groupServer       = "server"
	groupTransactions = "transactions"
)

// commands are all commands, in the order in which help shows them.
var commands = []command{
	{
		name: "check", usage: "field value [field value ...] [COST n]", summary: "Count an event and judge it under all rules that match it",
		group: groupDecisions, role: access.Check, least: 3, write: true, decides: true, handle: check,
	},
	{
		name: "take", usage: "rule key [COST n]", summary: "Count an event of a key and judge it under one rule",
		group: groupDecisions, role: access.Check, least: 3, most: 5, key: 2, write: true, decides: true, handle: take,
	},
	{
		name: "peek", usage: "rule key [COST n]", summary: "Answer what TAKE would, and change nothing",
		group: groupDecisions, role: access.Check, least: 3, most: 5, key: 2, decides: true, handle: take,
	},
	{
		name: "refund", usage: "rule key [COST n]", summary: "Give back what a key has used under a rule, the oldest first; answers how much",
		group: groupDecisions, role: access.Check, least: 3, most: 5, key: 2, write: true, handle: giveBack,
	},
	{
		name: "release", usage: "rule key [COST n]", summary: "End events under way of a key under an in-flight rule; answers how many there were",
		group: groupDecisions, role: access.Check, least: 3, most: 5, key: 2, write: true, handle: giveBack,
	},
	{
		name: "cl.throttle", usage: "key max_burst count period [quantity]", summary: "Judge an event of a key by the limit in the command, as redis-cell does",
		group: groupDecisions, role: access.Check, least: 5, most: 6, key: 1, write: true, handle: throttle,
	},
	{
		name: "del", usage: "key [key ...]", summary: "Reset keys of CL.THROTTLE; answers how many there were",
		group: groupDecisions, role: access.Check, least: 2, key: 1, write: true, handle: del,
	},
	{
		name: "reset", usage: "[rule key]", summary: "Delete what a key has used under a rule, but not its bans; without arguments, reset the connection",
		group: groupDecisions, argsRole: access.Admin, least: 1, most: 3, key: 2, write: true, whileSubscribed: true, immediate: true, handle: reset,
	},
	{
		name: "add", usage: "counter key [n]", summary: "Add to a key of a counter, which is made if it is not there",
		group: groupCounters, role: access.Check, least: 3, most: 4, key: 2, write: true, handle: add,
	},

	{
		name: "sum", usage: "counter key [SPAN duration]", summary: "A key's count over a span that ends now; the counter's longest if none is given",
		group: groupCounters, role: access.Read, least: 3, most: 5, key: 2, handle: count,
	},
	{
		name: "rate", usage: "counter key [SPAN duration]", summary: "A key's events a second over a span that ends now",
		group: groupCounters, role: access.Read, least: 3, most: 5, key: 2, handle: count,
	},
	{
		name: "top", usage: "counter n [SPAN duration]", summary: "The n keys with the largest counts, each followed by its count",
		group: groupCounters, role: access.Read, least: 3, most: 5, handle: top,
	},
	{
		name: "ban", usage: "rule key duration [reason]", summary: "Ban a key under a rule; answers when the ban is on disk",
		group: groupBans, role: access.Admin, least: 4, most: 5, key: 2, write: true, handle: ban,
	},
	{
		name: "unban", usage: "rule key | rule value value [value ...]", summary: "End a ban; answers 1, or 0 if there was none. Values of their own may contain tabs",
		group: groupBans, role: access.Admin, least: 3, key: 2, write: true, handle: unban,
	},
	{
		name: "unbanall", usage: "[RULE rule] [PATTERN glob] [NETWORK address]", summary: "End all bans under a rule, with a value of the key that matches a glob, or in a network; answers how many",
		group: groupBans, role: access.Admin, least: 3, most: 7, write: true, handle: unbanAll,
	},
	{
		name: "bans", usage: "[RULE rule] [COUNT n] [CURSOR cursor]", summary: "Bans that hold, the newest first: rule, key, since and until in ms, count, reason, source; with CURSOR, from 0, the next cursor and a page of them",
		group: groupBans, role: access.Read, least: 1, most: 7, handle: bans,
	},
	{
		name: "hot.report", usage: "rule value [value ...] count age-ms [value ... count age-ms ...]", summary: "Count events of keys under a hot rule, each some ms ago; answers how many records were counted",
		group: groupHot, role: access.Check, least: 5, write: true, handle: reportHot,
	},
	{
		name: "hot.changed", usage: "rule value [value ...]", summary: "Tell watchers that the value of a key changed; answers 1 if it is hot",
		group: groupHot, role: access.Check, least: 3, write: true, handle: changedHot,
	},
	{
		name: "hot.cache", usage: "rule hits misses loads stale", summary: "Count what the caches of a process did since it last said so",
		group: groupHot, role: access.Check, least: 6, most: 6, write: true, handle: countCache,
	},
	{
		name: "hot.stats", usage: "[rule]", summary: "What was reported under hot rules, and what caches saved",
		group: groupHot, role: access.Read, least: 1, most: 2, handle: hotStats,
	},
	{
		name: "hot.watch", usage: "[rule]", summary: "Receive the keys that are hot, and then each change, as JSON: messages of the channel hot.watch or hot.watch:rule, or with HELLO 3 pushes of the type hot",
		group: groupHot, role: access.Read, least: 1, most: 2, whileSubscribed: true, notQueued: true, handle: watchHot,
	},
	{
		name: "hot.list", usage: "[rule]", summary: "The keys that are hot, the newest first: rule, key, since and until in ms (0: always hot), lo, hi (-1: unknown or none), and the version at which the value last changed",
		group: groupHot, role: access.Read, least: 1, most: 2, handle: listHot,
	},
	{
		name: "rules", usage: "[RELOAD [DROPBANS]]", summary: "The rules in force: name, kind, sentence; or read the rules file again and answer what has changed",
		group: groupServer, role: access.Read, argsRole: access.Admin, least: 1, most: 3, handle: listRules,
	},

	{
		name: "subscribe", usage: "channel [channel ...]", summary: "Receive events of the channels bans, unbans, hot and rules, or of one rule: bans:NAME, unbans:NAME, hot:NAME; hot.watch and hot.watch:NAME are those of HOT.WATCH",
		group: groupPubSub, role: access.Read, least: 2, whileSubscribed: true, notQueued: true, handle: subscribe,
	},
	{
		name: "psubscribe", usage: "pattern [pattern ...]", summary: "Receive what is published on channels that a pattern matches",
		group: groupPubSub, role: access.Read, least: 2, whileSubscribed: true, notQueued: true, handle: subscribe,
	},
	{
		name: "unsubscribe", usage: "[channel ...]", summary: "End subscriptions to these channels, or to all",
		group: groupPubSub, role: access.Read, least: 1, whileSubscribed: true, notQueued: true, handle: unsubscribe,
	},
	{
		name: "punsubscribe", usage: "[pattern ...]", summary: "End subscriptions to these patterns, or to all",
		group: groupPubSub, role: access.Read, least: 1, whileSubscribed: true, notQueued: true, handle: unsubscribe,
	},

	{
		name: "multi", summary: "Begin a transaction: the commands that follow are queued and executed by EXEC",
		group: groupTransactions, role: access.Read, least: 1, most: 1, immediate: true, handle: multi,
	},
	{name: "exec", summary: "Execute what was queued, and answer an array of the replies", group: groupTransactions, role: access.Read, least: 1, most: 1, immediate: true, handle: execute},
	{name: "discard", summary: "Drop what was queued", group: groupTransactions, role: access.Read, least: 1, most: 1, immediate: true, handle: discard},
	{name: "watch", usage: "key [key ...]", summary: "Not supported; answers an error", group: groupTransactions, role: access.Read, least: 2, notQueued: true, handle: watch},
	{name: "unwatch", summary: "Answers OK: nothing is watched", group: groupTransactions, role: access.Read, least: 1, most: 1, handle: unwatch},

	{
		name: "hello", usage: "[2|3 [AUTH user token] [SETNAME name]]", summary: "Choose the version of the protocol, and authenticate",
		group: groupConnection, least: 1, notQueued: true, handle: hello,
	},
	{
		name: "auth", usage: "[user] token", summary: "Authenticate; the user is ignored",
		group: groupConnection, least: 2, most: 3, notQueued: true, handle: auth,
	},
	{name: "ping", usage: "[message]", summary: "Answer PONG, or the message", group: groupConnection, least: 1, most: 2, whileSubscribed: true, handle: ping},
	{name: "quit", summary: "Close the connection", group: groupConnection, least: 1, whileSubscribed: true, immediate: true, handle: quit},
	{name: "echo", usage: "message", summary: "Answer the message", group: groupConnection, role: access.Read, least: 2, most: 2, handle: echo},
	{name: "select", usage: "0", summary: "Choose the one database that there is", group: groupConnection, role: access.Read, least: 2, most: 2, handle: selectDB},
	{
		name: "client", usage: "ID|INFO|LIST|GETNAME|SETNAME name|SETINFO attribute value|NO-EVICT mode|NO-TOUCH mode|REPLY ON",
		summary: "The connection and what its client says of itself", group: groupConnection, role: access.Read, least: 2, handle: client,
	},
	{
		name: "command", usage: "[COUNT|LIST|INFO [name ...]|DOCS [name ...]]", summary: "The commands",
		group: groupServer, role: access.Read, least: 1, handle: describe,
	},
	{name: "info", usage: "[section ...]", summary: "The state of the server, in sections", group: groupServer, role: access.Read, least: 1, handle: info},
	{name: "config", usage: "GET pattern [pattern ...]", summary: "Answers an empty list: for clients that ask", group: groupServer, role: access.Read, least: 3, handle: configure},
	{name: "time", summary: "The time by which events are judged: seconds and microseconds", group: groupServer, role: access.Read, least: 1, most: 1, handle: clockTime},
}
