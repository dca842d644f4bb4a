// Package netnstest gives tests networks of their own in the Linux kernel, with programs that run in
// them in place of this machine's, such as nft, and with packets that are dropped.
package netnstest
