module snugly.dev/go

go 1.26.0

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/google/uuid v1.6.0
	github.com/klauspost/compress v1.20.3
	github.com/pierrec/lz4/v4 v4.1.33
	github.com/redis/go-redis/v9 v9.23.0
	github.com/shopspring/decimal v1.6.0
	github.com/tinylib/msgp v1.6.5
	github.com/valkey-io/valkey-go v1.0.79
	pgregory.net/rapid v1.3.0
)

require (
	github.com/philhofer/fwd v1.2.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/mod v0.18.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/tools v0.22.0 // indirect
)

tool github.com/tinylib/msgp
