package cache

//go:generate go tool msgp -o types_gen_test.go -tests=false -io=false -unexported

type profile struct {
	ID      int64             `msg:"id"`
	Name    string            `msg:"name"`
	Emails  []string          `msg:"emails"`
	Notes   map[string]string `msg:"notes"`
	Picture []byte            `msg:"picture,zerocopy"`
	Score   float64           `msg:"score,omitempty"`
	Address struct {
		Street string `msg:"street"`
		Number uint16 `msg:"number"`
	} `msg:"address"`
	Friend *profile `msg:"friend"`
	At     point    `msg:"at"`
	Hidden string   `msg:"-" json:"-"`
}

type profiles []profile

//msgp:tuple point
type point struct {
	X, Y int32
}

type age int64

type untagged struct {
	ID      int64 `msg:"id"`
	AreaID  int64
	Address struct {
		HTTPServer string
	} `msg:"address"`
	Parts []untaggedPart `msg:"parts"`
}

type untaggedPart struct {
	Name  string `json:"name"`
	Ready chan bool
}
