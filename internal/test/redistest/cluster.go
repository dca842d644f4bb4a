package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// slots is how many slots a cluster has.
const slots = 16384

// A Cluster is several servers on loopback that share the slots, without replicas.
type Cluster struct{ Nodes []*Server }

// NewCluster starts a cluster of n nodes for one test, which ends with it.
func NewCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	c := new(Cluster)
	for i := range n {
		node := listening(t, func(second string) []string {
			// a node that a busy machine has delayed must not count as lost
			return []string{"--cluster-enabled", "yes", "--cluster-port", second, "--cluster-node-timeout", "60000"}
		})
		c.Nodes = append(c.Nodes, node)
		node.Do(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		node.Do(t, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/n), strconv.Itoa((i+1)*slots/n-1))
	}
	for _, node := range c.Nodes[1:] {
		host, port, _ := strings.Cut(node.Addr, ":")
		c.Nodes[0].Do(t, "CLUSTER", "MEET", host, port, node.busPort())
	}
	for _, node := range c.Nodes {
		client := node.Client(t)
		eventually(t, "each node of the cluster knows all others", func() bool {
			info := Do(t, client, "CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_size:%d\r\n", n))
		})
	}
	return c
}

// busPort returns the port at which a node of a cluster talks to the others.
func (s *Server) busPort() string {
	for i, setting := range s.settings {
		if setting == "--cluster-port" {
			return s.settings[i+1]
		}
	}
	return ""
}

// Client returns a client of the cluster, which is closed when the test ends.
func (c *Cluster) Client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	return newClient(t, rueidis.ClientOption{InitAddress: []string{c.Nodes[0].Addr}}, change...)
}

// Owner returns the number of the node that serves the slot of a key, and the slot.
func (c *Cluster) Owner(t testing.TB, key string) (node, slot int) {
	t.Helper()
	slot, err := strconv.Atoi(c.Nodes[0].Do(t, "CLUSTER", "KEYSLOT", key))
	if err != nil {
		t.Fatal(err)
	}
	for i, node := range c.Nodes {
		// The fields of a line are described at CLUSTER NODES; from the ninth on they are slots.
		for line := range strings.Lines(node.Do(t, "CLUSTER", "NODES")) {
			fields := strings.Fields(line)
			if !strings.Contains(fields[2], "myself") {
				continue
			}
			for _, r := range fields[8:] {
				first, last, isRange := strings.Cut(r, "-")
				from, _ := strconv.Atoi(first)
				to, _ := strconv.Atoi(last)
				if from == slot || isRange && from <= slot && slot <= to {
					return i, slot
				}
			}
		}
	}
	t.Fatalf("no node serves slot %d", slot)
	return 0, 0
}

// A Move is a slot on its way from one node to another.
type Move struct {
	Slot string

	c            *Cluster
	from, to     *Server
	fromID, toID string
}

// Begin begins to move a slot: from now on, new keys of it go to the other node.
func (c *Cluster) Begin(t testing.TB, slot, from, to int) *Move {
	t.Helper()
	m := &Move{Slot: strconv.Itoa(slot), c: c, from: c.Nodes[from], to: c.Nodes[to]}
	m.fromID, m.toID = m.from.Do(t, "CLUSTER", "MYID"), m.to.Do(t, "CLUSTER", "MYID")
	m.to.Do(t, "CLUSTER", "SETSLOT", m.Slot, "IMPORTING", m.fromID)
	m.from.Do(t, "CLUSTER", "SETSLOT", m.Slot, "MIGRATING", m.toID)
	return m
}

// Keys moves at most n keys one by one, and returns how many there were.
func (m *Move) Keys(t testing.TB, n int) (moved int) {
	t.Helper()
	host, port, _ := strings.Cut(m.to.Addr, ":")
	keys := strings.Fields(strings.Trim(m.from.Do(t, "CLUSTER", "GETKEYSINSLOT", m.Slot, strconv.Itoa(n)), "[]"))
	for _, key := range keys {
		m.from.Do(t, "MIGRATE", host, port, key, "0", "60000")
	}
	return len(keys)
}

// End moves the remaining keys and gives the slot to the other node, and announces that to all nodes.
func (m *Move) End(t testing.TB) {
	t.Helper()
	for m.Keys(t, 100) > 0 {
	}
	m.to.Do(t, "CLUSTER", "SETSLOT", m.Slot, "NODE", m.toID)
	m.from.Do(t, "CLUSTER", "SETSLOT", m.Slot, "NODE", m.toID)
	for _, node := range m.c.Nodes {
		if node != m.to && node != m.from {
			node.Do(t, "CLUSTER", "SETSLOT", m.Slot, "NODE", m.toID)
		}
	}
}
