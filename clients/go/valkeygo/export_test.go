package valkeygo

// ReplyTimeout is the time that a client lets the server take for a reply.
var ReplyTimeout = replyTimeout
