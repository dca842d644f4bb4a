return decide(1)
