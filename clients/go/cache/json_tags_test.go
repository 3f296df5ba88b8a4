package cache

//go:generate go tool msgp -o json_tags_gen_test.go -tests=false -io=false -unexported

//msgp:tag json

type taggedByJSON struct {
	ID   int64  `json:"id"`
	Name string `json:"name,omitempty"`
}
