// Package api has the types of the JSON that a lately server and its clients exchange:
// the requests and answers of the HTTP API, and the events that subscribers receive.
// Package client and the server encode and decode these types, and the OpenAPI document
// at /openapi.json is made of them.
//
// Go programs use package client, which returns many of these types. Programs that make
// their own HTTP requests can encode and decode these types with encoding/json.
//
// Times are in UTC. A member whose name ends in _ms is a number of whole milliseconds,
// rounded up. A member that does not apply is left out.
package api
