package keytable

// InUse returns how many blocks of b are in use.
func (b *Blocks) InUse() (n int) {
	for i := range b.classes {
		n += b.classes[i].len()
	}
	return n
}

// Ever returns how many blocks b has ever handed out for the first time.
func (b *Blocks) Ever() (n int) {
	for i := range b.classes {
		for _, chunk := range b.classes[i].state {
			n += int(chunk.next)
		}
	}
	return n
}
