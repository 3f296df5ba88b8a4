package shims

import "time"

// TimeToMillis gives the milliseconds since 1970 in UTC. What is finer is cut off.
func TimeToMillis(at time.Time) int64 { return at.UnixMilli() }

// MillisToTime gives the time in UTC; the zero time.Time for what that was turned into.
func MillisToTime(milliseconds int64) time.Time { return time.UnixMilli(milliseconds).UTC() }
