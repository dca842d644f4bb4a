package respapi

import (
	"slices"

	"github.com/lately-go/lately/internal/server/access"
)

// The groups of commands, as help shows them.
const (
	decisions  = "decisions"
	counting   = "counters"
	banning    = "bans"
	connection = "connection"
	telling    = "pubsub"
	serverside = "server"

	transactions = "transactions"
)

// commands returns all commands, in the order in which help shows them.
func commands() []command {
	return slices.Concat(decisionCommands(), stateCommands(), feedCommands(), transactionCommands(), clientCommands())
}

// decisionCommands is what services ask.
func decisionCommands() []command {
	return []command{
		{
			name: "check", usage: "field value [field value ...] [COST n] [AT unix-ms]", summary: "Count an event and judge it under all rules that match it",
			group: decisions, need: access.Check, least: 3, write: true, handle: check,
		},
		{
			name: "take", usage: "rule key [COST n]", summary: "Count an event of a key and judge it under one rule",
			group: decisions, need: access.Check, least: 3, most: 5, key: 2, write: true, handle: take,
		},
		{
			name: "peek", usage: "rule key [COST n]", summary: "Say what TAKE would, and change nothing",
			group: decisions, need: access.Check, least: 3, most: 5, key: 2, handle: peek,
		},
		{
			name: "refund", usage: "rule key [COST n]", summary: "Give back what a key has used under a rule, the oldest first; answers how much",
			group: decisions, need: access.Check, least: 3, most: 5, key: 2, write: true, handle: refund,
		},
		{
			name: "release", usage: "rule key [COST n]", summary: "End events under way of a key under an in-flight rule; answers how many there were",
			group: decisions, need: access.Check, least: 3, most: 5, key: 2, write: true, handle: release,
		},
		{
			name: "cl.throttle", usage: "key max_burst count period [quantity]", summary: "Judge an event of a key by the limit in the command, as redis-cell does",
			group: decisions, need: access.Check, least: 5, most: 6, key: 1, write: true, handle: throttle,
		},
		{
			name: "del", usage: "key [key ...]", summary: "Reset keys of CL.THROTTLE; answers how many there were",
			group: decisions, need: access.Check, least: 2, key: 1, write: true, handle: del,
		},
		{
			name: "reset", usage: "[rule key]", summary: "Forget what a key has used under a rule, bans go on; without arguments, reset the connection",
			group: decisions, said: true, needArgs: access.Admin, least: 1, most: 3, key: 2, write: true, inFeed: true, control: true, handle: reset,
		},
		{
			name: "add", usage: "counter key [n]", summary: "Add to a key of a counter, which is made if it is not there",
			group: counting, need: access.Check, least: 3, most: 4, key: 2, write: true, handle: add,
		},
	}
}

// stateCommands is what is known, and what can be changed.
func stateCommands() []command {
	return []command{
		{
			name: "sum", usage: "counter key [SPAN duration]", summary: "A key's count over a span that ends now; the counter's longest if none is given",
			group: counting, need: access.Read, least: 3, most: 5, key: 2, handle: sum,
		},
		{
			name: "rate", usage: "counter key [SPAN duration]", summary: "A key's events a second over a span that ends now",
			group: counting, need: access.Read, least: 3, most: 5, key: 2, handle: rate,
		},
		{
			name: "top", usage: "counter n [SPAN duration]", summary: "The n keys with the largest counts, each followed by its count",
			group: counting, need: access.Read, least: 3, most: 5, handle: top,
		},
		{
			name: "ban", usage: "rule key duration [reason]", summary: "Ban a key under a rule; answers when the ban is on disk",
			group: banning, need: access.Admin, least: 4, most: 5, key: 2, write: true, handle: ban,
		},
		{
			name: "unban", usage: "rule key | rule value value [value ...]", summary: "End a ban; answers 1, or 0 if there was none. Values of their own may contain tabs",
			group: banning, need: access.Admin, least: 3, key: 2, write: true, handle: unban,
		},
		{
			name: "unbanall", usage: "[RULE rule] [PATTERN glob] [NETWORK address]", summary: "End all bans under a rule, with a value of the key that matches a glob, or in a network; answers how many",
			group: banning, need: access.Admin, least: 3, most: 7, write: true, handle: unbanAll,
		},
		{
			name: "bans", usage: "[RULE rule] [COUNT n] [CURSOR cursor]", summary: "Bans that hold, the newest first: rule, key, since and until in ms, count, reason, source; with CURSOR, from 0, the next cursor and a page of them",
			group: banning, need: access.Read, least: 1, most: 7, handle: bans,
		},
		{
			name: "rules", usage: "[RELOAD [DROPBANS]]", summary: "The rules in force: name, kind, sentence; or read the rules file again and answer what has changed",
			group: serverside, need: access.Read, needArgs: access.Admin, least: 1, most: 3, handle: listRules,
		},
	}
}

// feedCommands is for those who want to be told.
func feedCommands() []command {
	return []command{
		{
			name: "subscribe", usage: "channel [channel ...]", summary: "Be told of bans, unbans, hot, rules, or one rule's: bans:NAME, unbans:NAME, hot:NAME",
			group: telling, need: access.Read, least: 2, inFeed: true, alone: true, handle: subscribe,
		},
		{
			name: "psubscribe", usage: "pattern [pattern ...]", summary: "Be told of what is published on channels that a pattern matches",
			group: telling, need: access.Read, least: 2, inFeed: true, alone: true, handle: psubscribe,
		},
		{
			name: "unsubscribe", usage: "[channel ...]", summary: "End subscriptions to these channels, or to all",
			group: telling, need: access.Read, least: 1, inFeed: true, alone: true, handle: unsubscribe,
		},
		{
			name: "punsubscribe", usage: "[pattern ...]", summary: "End subscriptions to these patterns, or to all",
			group: telling, need: access.Read, least: 1, inFeed: true, alone: true, handle: punsubscribe,
		},
	}
}

// transactionCommands are for clients that wrap their pipelines in a transaction.
func transactionCommands() []command {
	return []command{
		{
			name: "multi", summary: "Begin a transaction: the commands that follow are queued and executed by EXEC",
			group: transactions, need: access.Read, least: 1, most: 1, control: true, handle: multi,
		},
		{name: "exec", summary: "Execute what was queued, and answer an array of the replies", group: transactions, need: access.Read, least: 1, most: 1, control: true, handle: execute},
		{name: "discard", summary: "Drop what was queued", group: transactions, need: access.Read, least: 1, most: 1, control: true, handle: discard},
		{name: "watch", usage: "key [key ...]", summary: "Not supported; answers an error", group: transactions, need: access.Read, least: 2, alone: true, handle: watch},
		{name: "unwatch", summary: "Answers OK: nothing is watched", group: transactions, need: access.Read, least: 1, most: 1, handle: unwatch},
	}
}

// clientCommands is what clients send by themselves.
func clientCommands() []command {
	return []command{
		{
			name: "hello", usage: "[2|3 [AUTH user token] [SETNAME name]]", summary: "Choose the version of the protocol, and say who you are",
			group: connection, said: true, least: 1, alone: true, handle: hello,
		},
		{
			name: "auth", usage: "[user] token", summary: "Say who you are; the user is not looked at",
			group: connection, said: true, least: 2, most: 3, alone: true, handle: auth,
		},
		{name: "ping", usage: "[message]", summary: "Answer PONG, or the message", group: connection, said: true, least: 1, most: 2, inFeed: true, handle: ping},
		{name: "quit", summary: "Close the connection", group: connection, said: true, least: 1, inFeed: true, control: true, handle: quit},
		{name: "echo", usage: "message", summary: "Answer the message", group: connection, need: access.Read, least: 2, most: 2, handle: echo},
		{name: "select", usage: "0", summary: "Choose the one database that there is", group: connection, need: access.Read, least: 2, most: 2, handle: selectDB},
		{
			name: "client", usage: "ID|INFO|LIST|GETNAME|SETNAME name|SETINFO attribute value|NO-EVICT mode|NO-TOUCH mode|REPLY ON",
			summary: "What a client says of itself", group: connection, need: access.Read, least: 2, handle: client,
		},
		{
			name: "command", usage: "[COUNT|LIST|INFO [name ...]|DOCS [name ...]]", summary: "What commands there are",
			group: serverside, need: access.Read, least: 1, handle: describe,
		},
		{name: "info", usage: "[section ...]", summary: "What the server says of itself", group: serverside, need: access.Read, least: 1, handle: info},
		{name: "config", usage: "GET pattern [pattern ...]", summary: "Answers an empty list: for clients that ask", group: serverside, need: access.Read, least: 3, handle: configure},
		{name: "time", summary: "The time by which events are judged: seconds and microseconds", group: serverside, need: access.Read, least: 1, most: 1, handle: clockTime},
	}
}
