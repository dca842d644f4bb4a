package client

// The node of a key is the one with the largest score, and if that is down, the one with
// the next (rendezvous hashing: D. Thaler and C. Ravishankar, "Using Name-Based Mappings to
// Increase Hit Rates", 1998). So a node that goes or comes moves only keys of its own. Every
// client must compute the same score, in any language and at any time:
//
//	score = mix(mix(fnv1a(node)) ^ mix(fnv1a(rule + "\x00" + key)))
//
// fnv1a is FNV-1a of 64 bits, node the address as it was configured or looked up, and key
// the values of the key, joined by a tab. mix is the finalizer of MurmurHash3.

const (
	fnvStart = 14695981039346656037
	fnvPrime = 1099511628211
)

func fnv1a[T string | []byte](h uint64, s T) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// hashOf returns the hash of a key under a rule.
func hashOf(rule, key string) uint64 {
	return mix(fnv1a(fnv1a(fnvStart, rule)*fnvPrime, key)) // the zero byte between them
}

// choose returns the node with the largest score for key below a bound, or nil. To get
// the nodes in the order of their scores, pass the score of the previous node.
func choose(nodes []*node, key, below uint64) (best *node, most uint64) {
	for _, n := range nodes {
		if s := mix(n.hash ^ key); s < below && (best == nil || s > most) {
			best, most = n, s
		}
	}
	return best, most
}
