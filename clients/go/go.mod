module snugly.dev/go

go 1.24.9

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/google/uuid v1.6.0
	github.com/klauspost/compress v1.19.2
	github.com/pierrec/lz4/v4 v4.1.33
	github.com/redis/go-redis/v9 v9.22.0
	github.com/shopspring/decimal v1.6.0
	github.com/tinylib/msgp v1.6.5
	github.com/valkey-io/valkey-go v1.0.74
	pgregory.net/rapid v1.3.0
)

require (
	github.com/philhofer/fwd v1.2.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/mod v0.18.0 // indirect
	golang.org/x/sys v0.39.0 // indirect
	golang.org/x/tools v0.22.0 // indirect
)

tool github.com/tinylib/msgp
