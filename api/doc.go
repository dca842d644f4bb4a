// Package api has the JSON types that a lately server and its clients exchange:
// requests and answers of the HTTP API, and events for subscribers. Package client and
// the server encode and decode these types, and the OpenAPI document at /openapi.json
// is generated from them.
//
// Go programs use package client, which returns many of these types. Programs that make
// their own HTTP requests can encode and decode these types with encoding/json.
//
// Times are in UTC. A member whose name ends in _ms is a number of whole milliseconds,
// rounded up. A member that does not apply is omitted.
package api
