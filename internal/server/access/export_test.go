package access

// Peers returns how many peers a gate takes memory for.
func (g *ConnLimiter) Peers() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.peers)
}
