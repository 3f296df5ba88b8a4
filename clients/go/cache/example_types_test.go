package cache_test

//go:generate go tool msgp -o example_types_gen_test.go -tests=false -io=false

type User struct {
	ID     int64    `msg:"id"`
	Name   string   `msg:"name"`
	Emails []string `msg:"emails"`
}
