// Package shims stores types as MessagePack that github.com/tinylib/msgp does not know, or stores longer than it must.
//
// Most need no function, but a comment in the file that the code is generated from. Decimals, and whatever else is an
// encoding.TextMarshaler, as text:
//
//	//msgp:textmarshal as:string decimal.Decimal
//
// UUIDs, and whatever else is an encoding.BinaryMarshaler, as bytes, 18 instead of the 38 of their text:
//
//	//msgp:binmarshal uuid.UUID
//
// Times: msgp writes them as an extension of its own, 15 bytes that other languages do not know. As the extension of
// MessagePack's specification, 6 to 15 bytes, with nanoseconds:
//
//	//msgp:newtime
//
// or as milliseconds since 1970, up to 9 bytes, with [TimeToMillis] and [MillisToTime]:
//
//	//msgp:shim time.Time as:int64 using:shims.TimeToMillis/shims.MillisToTime
//
// The time zone is lost in all of them; a time.Duration is a number anyway.
package shims
