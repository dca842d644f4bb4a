package keytable

// Release gives all memory of b back to the budget. No log of b may be used any
// more.
func (b *Blocks) Release() {
	for i := range b.classes {
		b.classes[i].release()
	}
}

func (c *blockClass) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, chunk := range *c.chunks.Load() {
		c.budget.GiveKept(int64(cap(chunk))*8 + blockLists)
	}
	c.chunks.Store(new([][]uint64))
	c.state, c.open, c.gaps, c.low, c.used, c.blocks = nil, nil, nil, 0, 0, 0
}
