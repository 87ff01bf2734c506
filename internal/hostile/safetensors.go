package hostile

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Why some verdicts are not the reference's.
const (
	whyNames = "of equal names the reference silently keeps the last; the format's documentation forbids them"
	whyDType = "the reference refuses element types that it does not know; here they are bytes"
	whyArray = "the reference takes an array for an entry, an accident of its parser that no writer uses"
	whyRank  = "more dimensions than any library has; shapes are held in memory"
)

// entry is a tensor "a" whose header has extra text before its end.
func entry(dtype, shape, offsets, extra string) string {
	return fmt.Sprintf(`{"a":{"dtype":%s,"shape":%s,"data_offsets":%s%s}}`, dtype, shape, offsets, extra)
}

// u8 is an entry of a U8 vector at [begin, end].
func u8(name string, begin, end int) string {
	return fmt.Sprintf(`"%s":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}`, name, max(0, end-begin), begin, end)
}

func object(entries ...string) string { return "{" + strings.Join(entries, ",") + "}" }

// Safetensors is the corpus of safetensors files.
func Safetensors() []Case {
	var list []Case
	add := func(name string, want Want, differs string, file []byte) {
		list = append(list, Case{Name: name, Want: want, Differs: differs, Data: func() []byte { return file }})
	}
	for _, c := range frames() {
		add(c.name, c.want, c.differs, []byte(c.text))
	}
	for _, c := range headers() {
		add(c.name, c.want, c.differs, Frame(c.text, c.data))
	}
	return append(list, bigHeaders()...)
}

type textCase struct {
	name       string
	want       Want
	text, data string
	differs    string
}

// frames are files whose fault is in the length or the size.
func frames() []textCase {
	length := func(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }
	ok := string(Frame(object(u8("a", 0, 2), u8("b", 2, 5)), "abcde"))
	return []textCase{
		{name: "good", want: Accept, text: ok},
		{name: "empty-file", want: Truncated, text: ""},
		{name: "one-byte", want: Truncated, text: "x"},
		{name: "seven-bytes", want: Truncated, text: length(2)[:7]},
		{name: "only-length", want: Truncated, text: length(2)},
		{name: "no-header", want: Invalid, text: length(0)},
		{name: "length-huge", want: TooLarge, text: length(0xffffff000000003c) + ok[8:]},
		{name: "length-wraps", want: TooLarge, text: length(1<<64-8) + ok[8:]},
		{name: "length-max", want: TooLarge, text: length(1<<64-1) + ok[8:]},
		{name: "length-negative", want: TooLarge, text: length(1<<63) + ok[8:]},
		{name: "length-over-cap", want: TooLarge, text: length(100_000_001) + ok[8:]},
		{name: "length-beyond-file", want: Truncated, text: length(100_000_000) + ok[8:]},
		{name: "length-one-beyond-file", want: Truncated, text: length(3) + "{}"},
		{name: "two-bytes-short", want: Truncated, text: ok[:len(ok)-2]},
		{name: "no-data", want: Truncated, text: ok[:len(ok)-5]},
		{name: "one-byte-trailing", want: Trailing, text: ok + "x"},
		{name: "trailing-without-tensors", want: Trailing, text: length(2) + "{}zip"},
		{name: "trailing-zeros", want: Trailing, text: ok + strings.Repeat("\x00", 64)},
	}
}

// headers are files whose fault, if there is one, is in the JSON.
func headers() []textCase {
	const two = `[0,2]`
	nest := func(n int) string {
		return entry(`"U8"`, `[2]`, two, `,"x":`+strings.Repeat("[", n)+strings.Repeat("]", n))
	}
	ten := make([]string, 10)
	for i := range ten {
		ten[i] = u8(fmt.Sprint("t", i), 0, 16)
	}
	return []textCase{
		{name: "byte-ff", want: Invalid, text: "\xff"},
		{name: "open-brace", want: Invalid, text: "{"},
		{name: "array", want: Invalid, text: "[]"},
		{name: "null", want: Invalid, text: "null"},
		{name: "string", want: Invalid, text: `"x"`},
		{name: "number", want: Invalid, text: "0"},
		{name: "only-spaces", want: Invalid, text: "        "},
		{name: "no-tensors", want: Accept, text: "{}"},
		{name: "two-values", want: Invalid, text: "{}{}"},
		{name: "leading-white-space", want: Accept, text: " \n\t\r" + object(u8("a", 0, 2)), data: "xx"},
		{name: "trailing-white-space", want: Accept, text: object(u8("a", 0, 2)) + " \n\t\r ", data: "xx"},
		{name: "trailing-nul", want: Invalid, text: object(u8("a", 0, 2)) + "\x00", data: "xx"},
		{name: "byte-order-mark", want: Invalid, text: "\ufeff{}"},
		{name: "trailing-comma", want: Invalid, text: "{" + u8("a", 0, 2) + ",}", data: "xx"},
		{name: "missing-colon", want: Invalid, text: `{"a" {}}`},
		{name: "single-quotes", want: Invalid, text: `{'a':{}}`},
		{name: "comment", want: Invalid, text: `{/**/}`},
		{name: "invalid-utf8", want: Invalid, text: object(u8("\xc3\x28", 0, 2)), data: "xx"},
		{name: "utf8-surrogate", want: Invalid, text: object(u8("\xed\xa0\x80", 0, 2)), data: "xx"},
		{name: "utf8-overlong", want: Invalid, text: object(u8("\xc0\xaf", 0, 2)), data: "xx"},
		{name: "control-in-string", want: Invalid, text: object(u8("\n", 0, 2)), data: "xx"},
		{name: "escaped-nul-name", want: Accept, text: object(u8(`\u0000`, 0, 2)), data: "xx"},
		{name: "surrogate-pair", want: Accept, text: object(u8(`\ud83d\ude00`, 0, 2)), data: "xx"},
		{name: "half-pair-high", want: Invalid, text: object(u8(`\ud83d`, 0, 2)), data: "xx"},
		{name: "half-pair-low", want: Invalid, text: object(u8(`\ude00`, 0, 2)), data: "xx"},
		{name: "half-pair-two-highs", want: Invalid, text: object(u8(`\ud83d\ud83d`, 0, 2)), data: "xx"},
		{name: "bad-escape", want: Invalid, text: object(u8(`\x41`, 0, 2)), data: "xx"},
		{name: "cut-escape", want: Invalid, text: `{"a\`},
		{name: "cut-unicode-escape", want: Invalid, text: `{"a\u00`},
		{name: "empty-name", want: Accept, text: object(u8("", 0, 2)), data: "xx"},
		{name: "nested-127", want: Accept, text: nest(125), data: "xx"},
		{name: "nested-128", want: Invalid, text: nest(126), data: "xx"},
		{name: "nested-deep", want: Invalid, text: strings.Repeat(`{"a":`, 2000)},
		{name: "nested-arrays", want: Invalid, text: strings.Repeat("[", 2000)},

		{name: "duplicate-name", want: Invalid, text: object(u8("a", 0, 2), u8("a", 2, 4)), data: "xxxx"},
		{name: "duplicate-entry", want: Invalid, differs: whyNames, text: object(u8("a", 0, 2), u8("a", 0, 2)), data: "xx"},
		{name: "duplicate-name-escaped", want: Invalid, differs: whyNames, text: object(u8("a", 0, 2), u8(`\u0061`, 0, 2)), data: "xx"},
		{name: "duplicate-empty", want: Invalid, differs: whyNames, text: object(u8("a", 0, 0), u8("b", 0, 2), u8("a", 2, 2)), data: "xx"},
		{name: "duplicate-dtype", want: Invalid, text: entry(`"U8"`, `[2]`, two, `,"dtype":"U8"`), data: "xx"},
		{name: "duplicate-dtype-escaped", want: Invalid, text: entry(`"U8"`, `[2]`, two, `,"\u0064type":"U8"`), data: "xx"},
		{name: "duplicate-shape", want: Invalid, text: entry(`"U8"`, `[2]`, two, `,"shape":[2]`), data: "xx"},
		{name: "duplicate-offsets", want: Invalid, text: entry(`"U8"`, `[2]`, two, `,"data_offsets":[0,2]`), data: "xx"},
		{name: "duplicate-unknown-key", want: Accept, text: entry(`"U8"`, `[2]`, two, `,"x":1,"x":{"y":null,"y":[true]}`), data: "xx"},

		{name: "metadata", want: Accept, text: object(`"__metadata__":{"format":"pt"}`, u8("a", 0, 2)), data: "xx"},
		{name: "metadata-last", want: Accept, text: object(u8("a", 0, 2), `"__metadata__":{"format":"pt"}`), data: "xx"},
		{name: "metadata-null", want: Accept, text: object(`"__metadata__":null`)},
		{name: "metadata-empty", want: Accept, text: object(`"__metadata__":{}`)},
		{name: "metadata-duplicate-key", want: Accept, text: object(`"__metadata__":{"a":"1","a":"2"}`)},
		{name: "metadata-escaped", want: Accept, text: object(`"\u005f_metadata__":{"a":"1"}`)},
		{name: "metadata-number", want: Invalid, text: object(`"__metadata__":{"a":1}`)},
		{name: "metadata-value-null", want: Invalid, text: object(`"__metadata__":{"a":null}`)},
		{name: "metadata-object", want: Invalid, text: object(`"__metadata__":{"a":{}}`)},
		{name: "metadata-array", want: Invalid, text: object(`"__metadata__":[]`)},
		{name: "metadata-string", want: Invalid, text: object(`"__metadata__":"x"`)},
		{name: "metadata-twice", want: Invalid, text: object(`"__metadata__":{}`, `"__metadata__":{}`)},
		{name: "metadata-null-twice", want: Invalid, text: object(`"__metadata__":null`, `"__metadata__":null`)},
		{name: "metadata-tensor", want: Invalid, text: object(u8("__metadata__", 0, 2)), data: "xx"},

		{name: "no-dtype", want: Invalid, text: `{"a":{"shape":[2],"data_offsets":[0,2]}}`, data: "xx"},
		{name: "no-shape", want: Invalid, text: `{"a":{"dtype":"U8","data_offsets":[0,2]}}`, data: "xx"},
		{name: "no-offsets", want: Invalid, text: `{"a":{"dtype":"U8","shape":[2]}}`, data: "xx"},
		{name: "empty-entry", want: Invalid, text: `{"a":{}}`},
		{name: "null-entry", want: Invalid, text: `{"a":null}`},
		{name: "array-entry", want: Invalid, differs: whyArray, text: `{"a":["U8",[2],[0,2]]}`, data: "xx"},
		{name: "dtype-object", want: Invalid, differs: whyArray, text: entry(`{"U8":null}`, `[2]`, two, ""), data: "xx"},
		{name: "dtype-number", want: Invalid, text: entry(`8`, `[2]`, two, ""), data: "xx"},
		{name: "dtype-null", want: Invalid, text: entry(`null`, `[2]`, two, ""), data: "xx"},
		{name: "dtype-unknown", want: Accept, differs: whyDType, text: entry(`"F3_NEW"`, `[7]`, two, ""), data: "xx"},
		{name: "dtype-lower-case", want: Accept, differs: whyDType, text: entry(`"u8"`, `[2]`, two, ""), data: "xx"},
		{name: "dtype-empty", want: Accept, differs: whyDType, text: entry(`""`, `[2]`, two, ""), data: "xx"},
		{name: "dtype-unknown-overflow", want: Invalid, text: entry(`"NEW"`, `[18446744073709551615,2]`, two, ""), data: "xx"},
		{name: "unknown-key", want: Accept, text: entry(`"U8"`, `[2]`, two, `,"x":[1e308,-0,{"y":"z"},null,true,false]`), data: "xx"},
		{name: "unknown-key-infinite", want: Invalid, text: entry(`"U8"`, `[2]`, two, `,"x":1e999`), data: "xx"},
		{name: "unknown-key-nan", want: Invalid, text: entry(`"U8"`, `[2]`, two, `,"x":NaN`), data: "xx"},

		{name: "shape-float", want: Invalid, text: entry(`"U8"`, `[2.0]`, two, ""), data: "xx"},
		{name: "shape-exponent", want: Invalid, text: entry(`"U8"`, `[2e0]`, two, ""), data: "xx"},
		{name: "shape-negative", want: Invalid, text: entry(`"U8"`, `[-2]`, two, ""), data: "xx"},
		{name: "shape-leading-zero", want: Invalid, text: entry(`"U8"`, `[02]`, two, ""), data: "xx"},
		{name: "shape-string", want: Invalid, text: entry(`"U8"`, `["2"]`, two, ""), data: "xx"},
		{name: "shape-null", want: Invalid, text: entry(`"U8"`, `null`, two, ""), data: "xx"},
		{name: "shape-nested", want: Invalid, text: entry(`"U8"`, `[[2]]`, two, ""), data: "xx"},
		{name: "shape-hole", want: Invalid, text: entry(`"U8"`, `[2,,1]`, two, ""), data: "xx"},
		{name: "shape-2-64", want: Invalid, text: entry(`"U8"`, `[0,18446744073709551616]`, `[0,0]`, "")},
		{name: "shape-overflow-1", want: Invalid, text: entry(`"U8"`, `[2,18446744073709551614]`, two, ""), data: "xx"},
		{name: "shape-overflow-2", want: Invalid, text: entry(`"U8"`, `[2,9223372036854775807]`, two, ""), data: "xx"},
		{name: "shape-overflow-bytes", want: Invalid, text: entry(`"F64"`, `[2305843009213693952]`, `[0,0]`, "")},
		{name: "shape-overflow-before-zero", want: Invalid, text: entry(`"F64"`, `[9223372036854775808,2,0]`, `[0,0]`, "")},
		{name: "shape-huge-without-elements", want: Accept, text: entry(`"F64"`, `[18446744073709551615,0]`, `[0,0]`, "")},
		{name: "shape-zero-first", want: Accept, text: entry(`"F64"`, `[0,18446744073709551615,18446744073709551615]`, `[0,0]`, "")},
		{name: "rank-64", want: Accept, text: entry(`"U8"`, `[2`+strings.Repeat(",1", 63)+`]`, two, ""), data: "xx"},
		{name: "rank-65", want: TooLarge, differs: whyRank, text: entry(`"U8"`, `[2`+strings.Repeat(",1", 64)+`]`, two, ""), data: "xx"},
		{name: "scalar", want: Accept, text: entry(`"U8"`, `[]`, `[0,1]`, ""), data: "x"},
		{name: "scalar-too-long", want: Invalid, text: entry(`"U8"`, `[]`, two, ""), data: "xx"},
		{name: "size-mismatch", want: Invalid, text: entry(`"I32"`, `[2,2]`, `[0,4]`, ""), data: "xxxx"},
		{name: "size-mismatch-zero", want: Invalid, text: entry(`"I32"`, `[0]`, `[0,4]`, ""), data: "xxxx"},
		{name: "f4-half-byte", want: Invalid, text: entry(`"F4"`, `[1,3]`, `[0,1]`, ""), data: "x"},
		{name: "f4-half-byte-rounded-up", want: Invalid, text: entry(`"F4"`, `[1,3]`, two, ""), data: "xx"},
		{name: "f4-whole-bytes", want: Accept, text: entry(`"F4"`, `[1,4]`, two, ""), data: "xx"},
		{name: "f6-whole-bytes", want: Accept, text: entry(`"F6_E2M3"`, `[4]`, `[0,3]`, ""), data: "xxx"},
		{name: "f6-part-byte", want: Invalid, text: entry(`"F6_E3M2"`, `[3]`, `[0,3]`, ""), data: "xxx"},

		{name: "offsets-one", want: Invalid, text: entry(`"U8"`, `[2]`, `[2]`, ""), data: "xx"},
		{name: "offsets-three", want: Invalid, text: entry(`"U8"`, `[2]`, `[0,2,2]`, ""), data: "xx"},
		{name: "offsets-none", want: Invalid, text: entry(`"U8"`, `[0]`, `[]`, "")},
		{name: "offsets-object", want: Invalid, text: entry(`"U8"`, `[2]`, `{"0":0,"1":2}`, ""), data: "xx"},
		{name: "offsets-minus-zero", want: Invalid, text: entry(`"U8"`, `[2]`, `[-0,2]`, ""), data: "xx"},
		{name: "offsets-float", want: Invalid, text: entry(`"U8"`, `[2]`, `[0,2.0]`, ""), data: "xx"},
		{name: "offsets-2-63", want: Invalid, text: entry(`"U8"`, `[2]`, `[9223372036854775808,9223372036854775810]`, ""), data: "xx"},
		{name: "offsets-2-64", want: Invalid, text: entry(`"U8"`, `[2]`, `[18446744073709551615,18446744073709551617]`, ""), data: "xx"},
		{name: "end-before-start", want: Invalid, text: entry(`"U8"`, `[2]`, `[2,0]`, ""), data: "xx"},
		{name: "end-before-start-unknown", want: Invalid, text: entry(`"NEW"`, `[2]`, `[2,0]`, ""), data: "xx"},
		{name: "offsets-beyond-data", want: Truncated, text: object(u8("a", 0, 2), u8("b", 2, 1000)), data: "xxxx"},
		{name: "offsets-huge-unknown", want: Invalid, text: entry(`"NEW"`, `[2]`, `[0,18446744073709551615]`, ""), data: "xx"},
		{name: "offsets-huge", want: Truncated, text: entry(`"U8"`, `[576460752303423488]`, `[0,576460752303423488]`, ""), data: "xx"},
		{name: "hole-at-start", want: Invalid, text: object(u8("a", 1, 3)), data: "xxx"},
		{name: "hole", want: Invalid, text: object(u8("a", 0, 2), u8("b", 3, 4)), data: "xxxx"},
		{name: "hole-at-end", want: Trailing, text: object(u8("a", 0, 2)), data: "xxx"},
		{name: "overlap", want: Invalid, text: object(u8("a", 0, 3), u8("b", 2, 4)), data: "xxxx"},
		{name: "overlap-empty-inside", want: Invalid, text: object(u8("a", 0, 3), u8("b", 2, 2)), data: "xxx"},
		{name: "overlap-ten", want: Invalid, text: object(ten...), data: strings.Repeat("x", 16)},
		{name: "any-order", want: Accept, text: object(u8("c", 5, 9), u8("a", 0, 2), u8("b", 2, 5)), data: "aabbbcccc"},
		{name: "empty-tensors", want: Accept, text: object(u8("e3", 2, 2), u8("a", 0, 2), u8("e1", 0, 0), u8("e2", 0, 0)), data: "xx"},
		{name: "misaligned", want: Accept, text: object(u8("a", 0, 1), `"b":{"dtype":"F64","shape":[1],"data_offsets":[1,9]}`), data: "xyyyyyyyy"},
	}
}

// bigHeaders are files that cost a careless reader much time or memory.
func bigHeaders() []Case {
	many := func(n, cap int, open, shut string, each func(b []byte, i int) []byte) func() []byte {
		return func() []byte {
			b := append(make([]byte, 8, cap), open...)
			for i := range n {
				if i > 0 {
					b = append(b, ',')
				}
				b = each(b, i)
			}
			b = append(b, shut...)
			binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
			return b
		}
	}
	// key is the i-th of 14 million distinct keys of four characters.
	key := func(b []byte, i int) []byte {
		const set = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		for range 4 {
			b = append(b, set[i%len(set)])
			i /= len(set)
		}
		return b
	}
	big := func(name string, want Want, differs string, data func() []byte) Case {
		return Case{Name: name, Want: want, Differs: differs, Data: data, Big: true}
	}
	ones := strings.Repeat(",1", 63)
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(100_000)
	return []Case{
		big("ten-million-entries", Invalid, "", many(10_000_000, 60<<20, "{", "}", func(b []byte, _ int) []byte {
			return append(b, `"":0`...)
		})),
		big("ten-million-metadata", Accept, "", many(9_999_900, 100<<20, `{"__metadata__":{`, "}}", func(b []byte, i int) []byte {
			return append(key(append(b, '"'), i), `":""`...)
		})),
		big("two-million-tensors", Accept, "", many(1_800_000, 100<<20, "{", "}", func(b []byte, i int) []byte {
			return append(key(append(b, '"'), i), `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`...)
		})),
		big("forty-million-dimensions", Accept, "", many(550_000, 100<<20, "{", "}", func(b []byte, i int) []byte {
			return append(key(append(b, '"'), i), `":{"dtype":"U8","shape":[0`+ones+`],"data_offsets":[0,0]}`...)
		})),
		big("million-dimensions", TooLarge, "", many(1_000_000, 3<<20, `{"a":{"shape":[`, `],"dtype":"U8","data_offsets":[0,1]}}`, func(b []byte, _ int) []byte {
			return append(b, '1')
		})),
		big("hundred-thousand-overlaps", Invalid, "", many(100_000, 8<<20, "{", "}", func(b []byte, i int) []byte {
			return append(b, u8(fmt.Sprint("t", i), 0, 16)...)
		})),
		big("hundred-thousand-overlaps-shuffled", Invalid, "", many(100_000, 8<<20, "{", "}", func(b []byte, i int) []byte {
			return append(b, u8(fmt.Sprint("t", i), shuffled[i], shuffled[i]+16)...)
		})),
		big("hundred-thousand-backwards", Accept, "", func() []byte {
			const n = 100_000
			return append(many(n, 8<<20, "{", "}", func(b []byte, i int) []byte {
				return append(b, u8(fmt.Sprint("t", i), n-1-i, n-i)...)
			})(), make([]byte, n)...)
		}),
	}
}
