// Package layout has the records of a published comparison of JSON and MessagePack in Go, so that this package's figures
// can be held against those. It knows no codec and no clock.
package layout

//go:generate go tool msgp -tests=false -io=false

// User is the owner of a record.
type User struct {
	ID    int64 `msg:"id"`
	Phone int64 `msg:"phone"`
	Age   int32 `msg:"age"`
}

// Layout is a record: thirteen fields, nearly all numbers.
type Layout struct {
	BalanceInCents int64   `msg:"balance_in_cents"`
	IdempotencyKey int64   `msg:"idempotency_key"`
	Key            float64 `msg:"key"`
	User           User    `msg:"user"`
	AreaID         int32   `msg:"area_id"`
	CreatedAt      int32   `msg:"created_at"`
	UpdatedAt      int32   `msg:"updated_at"`
	ID             uint32  `msg:"id"`
	Status         uint16  `msg:"status"`
	IsActive       bool    `msg:"is_active"`
	IsSpecial      bool    `msg:"is_special"`
	IsMigrated     bool    `msg:"is_migrated"`
	TenantID       int8    `msg:"tenant_id"`
}

// Layouts is what is cached at one key: a page of records.
type Layouts []Layout

// Record is the record of a number from 0.
func Record(number int) Layout {
	return Layout{
		BalanceInCents: int64(number*100 + 42),
		IdempotencyKey: int64(1_000_000 + number),
		Key:            float64(number) * 1.337,
		User:           User{ID: int64(number + 1), Phone: 15551234567, Age: int32(25 + number%40)},
		AreaID:         int32(number % 50),
		CreatedAt:      int32(1_700_000_000 + number),
		UpdatedAt:      int32(1_700_000_000 + number + 3600),
		ID:             uint32(number + 1),
		Status:         uint16(number % 5),
		IsActive:       number%2 == 0,
		IsSpecial:      number%7 == 0,
		IsMigrated:     number%3 == 0,
		TenantID:       int8(number % 10),
	}
}

// Records are the first so many records.
func Records(count int) Layouts {
	records := make(Layouts, count)
	for number := range records {
		records[number] = Record(number)
	}
	return records
}
