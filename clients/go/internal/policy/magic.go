package policy

// magic is the beginning of a format that is compressed already, from offset on.
type magic struct {
	offset int
	bytes  string
}

var magics = [...]magic{
	{0, "\x1f\x8b\x08"},           // gzip (RFC 1952)
	{0, "\x28\xb5\x2f\xfd"},       // zstd (RFC 8878)
	{0, "\x04\x22\x4d\x18"},       // LZ4 frame
	{0, "\xfd7zXZ\x00"},           // xz
	{0, "BZh"},                    // bzip2
	{0, "7z\xbc\xaf\x27\x1c"},     // 7-Zip
	{0, "PK\x03\x04"},             // ZIP, and what is made of it: docx, jar, apk
	{0, "Rar!\x1a\x07"},           // RAR
	{0, "\xff\x06\x00\x00sNaPpY"}, // framed Snappy
	{0, "\x89PNG\r\n\x1a\n"},      // PNG
	{0, "\xff\xd8\xff"},           // JPEG
	{0, "GIF8"},                   // GIF
	{8, "WEBP"},                   // WebP
	{4, "ftyp"},                   // MP4, AVIF, HEIC
	{0, "\xff\x0a"},               // JPEG XL
	{0, "\x1a\x45\xdf\xa3"},       // WebM, Matroska
	{0, "OggS"},                   // Ogg: Vorbis, Opus
	{0, "fLaC"},                   // FLAC
	{0, "ID3"},                    // MP3
	{0, "wOF2"},                   // WOFF2
	{0, "wOFF"},                   // WOFF
}

// firstBytes says whether a value with this first byte can have a magic number: one look for the JSON and HTML of every
// day.
var firstBytes = func() (first [256]bool) {
	first['R'] = true // RIFF, before WEBP
	first[0] = true   // the box length before ftyp
	for _, row := range magics {
		if row.offset == 0 {
			first[row.bytes[0]] = true
		}
	}
	return first
}()

// hasMagic tells whether a value starts as a compressed format does. Text can do so too: the caller looks at more of it.
func hasMagic(value []byte) bool {
	if len(value) == 0 || !firstBytes[value[0]] {
		return false
	}
	for at := range magics {
		row := &magics[at]
		end := row.offset + len(row.bytes)
		if len(value) >= end && string(value[row.offset:end]) == row.bytes {
			return true
		}
	}
	return false
}
