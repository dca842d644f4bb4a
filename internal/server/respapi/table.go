package respapi

import "slices"

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

// commands are all commands, in the order in which help shows them. Those of a group are beside
// their handlers.
var commands = slices.Concat(
	decisionCommands, counterCommands, banCommands, hotCommands, ruleCommands, subscriptionCommands, transactionCommands, connectionCommands, serverCommands,
)
