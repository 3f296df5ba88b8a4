package envelope

import "math"

// The structure of a zstd frame (RFC 8878, section 3.1.1), read without decoding it. Reading it first gives the
// dictionary's ID, the claimed size, a bound on the real one, and the certainty that there is exactly one frame and
// nothing behind it.

const (
	frameMagic  = "\x28\xb5\x2f\xfd"
	checksumLen = 4
	// Block_Maximum_Size is the window's size, and never more than this.
	maxBlock = 128 << 10
	// libzstd's ZSTD_WINDOWLOG_MAX on 64-bit machines.
	maxWindowLog = 31
)

// extent is the length that a payload claims and can reach.
type extent struct {
	claimed    uint64 // The length of the value, if isClaimed.
	isClaimed  bool
	reach      uint64 // The most bytes that the payload can decode to.
	dictionary uint32 // The ID of the dictionary that it needs; 0 for none.
}

// frameHeader is a frame's header.
type frameHeader struct {
	contentSize uint64
	hasSize     bool
	dictionary  uint32
	window      uint64
	hasChecksum bool
	len         int
}

// parseFrameHeader reads a frame's header, or says why there is none.
func parseFrameHeader(frame []byte) (header frameHeader, fault string) {
	if len(frame) < len(frameMagic)+1 || string(frame[:len(frameMagic)]) != frameMagic {
		return header, "no zstd frame starts here"
	}
	descriptor := frame[len(frameMagic)]
	if descriptor&0b1000 != 0 {
		return header, "the frame header uses a reserved bit"
	}
	rest := reader{frame[len(frameMagic)+1:], false}
	isSingleSegment := descriptor&0b10_0000 != 0
	if !isSingleSegment {
		window := rest.number(1)
		log := 10 + window>>3
		if log > maxWindowLog {
			return header, "the window is larger than zstd allows"
		}
		header.window = 1<<log + (1<<log)/8*(window&0b111)
	}
	header.dictionary = uint32(rest.number([4]int{0, 1, 2, 4}[descriptor&0b11]))
	header.hasSize = true
	switch descriptor >> 6 {
	case 0:
		header.hasSize = isSingleSegment
		if isSingleSegment {
			header.contentSize = rest.number(1)
		}
	case 1:
		header.contentSize = rest.number(2) + 256
	case 2:
		header.contentSize = rest.number(4)
	case 3:
		header.contentSize = rest.number(8)
	}
	if isSingleSegment {
		header.window = header.contentSize
	}
	header.hasChecksum = descriptor&0b100 != 0
	header.len = len(frame) - len(rest.bytes)
	if rest.isCut {
		return header, "the frame is cut off"
	}
	return header, ""
}

// frameExtent walks over the blocks of a frame: what it can decode to, if it is all there and nothing follows it.
func frameExtent(frame []byte) (extent, string) {
	header, fault := parseFrameHeader(frame)
	if fault != "" {
		return extent{}, fault
	}
	found := extent{claimed: header.contentSize, isClaimed: header.hasSize, dictionary: header.dictionary}
	largest := min(header.window, maxBlock)
	rest := reader{frame[header.len:], false}
	for isLast := false; !isLast; {
		block := rest.number(3)
		if rest.isCut {
			return extent{}, "the frame is cut off"
		}
		isLast = block&1 != 0
		size := block >> 3
		if size > largest {
			return extent{}, "a block is larger than the window allows"
		}
		switch block >> 1 & 0b11 {
		case 0:
			rest.skip(int(size))
			found.reach += size
		case 1:
			rest.skip(1)
			found.reach += size
		case 2:
			rest.skip(int(size))
			found.reach += largest
		default:
			return extent{}, "a block is of the reserved type"
		}
	}
	if header.hasChecksum {
		rest.skip(checksumLen)
	}
	switch {
	case rest.isCut:
		return extent{}, "the frame is cut off"
	case len(rest.bytes) > 0:
		return extent{}, "bytes follow the frame"
	}
	return found, ""
}

// reader takes little-endian numbers from the front of bytes; past their end all are 0.
type reader struct {
	bytes []byte
	isCut bool
}

func (r *reader) number(length int) uint64 {
	if length > len(r.bytes) {
		r.isCut, r.bytes = true, nil
		return 0
	}
	var number uint64
	for at := length - 1; at >= 0; at-- {
		number = number<<8 | uint64(r.bytes[at])
	}
	r.bytes = r.bytes[length:]
	return number
}

func (r *reader) skip(length int) {
	if length > len(r.bytes) {
		r.isCut, r.bytes = true, nil
		return
	}
	r.bytes = r.bytes[length:]
}

// maxWindow is the largest window of a frame that is decoded. It is never reserved.
const maxWindow = min(uint64(1)<<(maxWindowLog+1), math.MaxInt)
