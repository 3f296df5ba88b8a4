module snugly.dev/go/benchmark/glide

go 1.26.0

require (
	github.com/valkey-io/valkey-glide/go/v2 v2.5.3 // The newest that proxy.golang.org lists, as of November 2026.
	snugly.dev/go v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	google.golang.org/protobuf v1.33.0 // indirect
)

replace snugly.dev/go => ../..
