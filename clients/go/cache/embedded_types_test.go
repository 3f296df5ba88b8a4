package cache

// Without -unexported, as most people run it.
//go:generate go tool msgp -o embedded_types_gen_test.go -tests=false -io=false

type hiddenPart struct {
	Items []int64 `msg:"items"`
}

type OpenPart struct {
	Total int64 `msg:"total"`
}

type EmbedsHidden struct {
	hiddenPart
	ID int64 `msg:"id"`
}

type EmbedsHiddenPointer struct {
	*hiddenPart
	ID int64 `msg:"id"`
}

type EmbedsWhatIsLost struct {
	hiddenPart `msg:"-"`
	OpenPart   `msg:",flatten"`
	ID         int64 `msg:"id"`
}
