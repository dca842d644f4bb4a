// Package netnstest gives tests a network of their own in the Linux kernel, with an nft that
// changes it in place of this machine's.
package netnstest
