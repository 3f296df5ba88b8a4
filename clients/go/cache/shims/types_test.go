package shims_test

import (
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
)

//go:generate go tool msgp -o types_gen_test.go -tests=false -io=false

//msgp:textmarshal as:string decimal.Decimal
//msgp:binmarshal uuid.UUID
//msgp:shim time.Time as:int64 using:shims.TimeToMillis/shims.MillisToTime

// Order has a field of each type that needs help.
type Order struct {
	ID    uuid.UUID         `msg:"id"`
	Total decimal.Decimal   `msg:"total"`
	Parts []decimal.Decimal `msg:"parts"`
	Made  time.Time         `msg:"made"`
	Sent  *time.Time        `msg:"sent"`
}
