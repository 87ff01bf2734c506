package safetensors

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep objects and arrays may nest, counted as the reference does.
const maxDepth = 127

// scanner reads JSON (RFC 8259) from text, which must be valid UTF-8. It copies nothing but strings with escapes.
type scanner struct {
	text  string
	pos   int
	depth int
}

func (s *scanner) fail(fact string) error {
	return fmt.Errorf("JSON byte %d: %s: %w", s.pos, fact, ErrInvalid)
}

// peek skips white space and returns the next byte, or 0 at the end. A NUL in the text is no token either.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take consumes c after white space.
func (s *scanner) take(c byte) error {
	if s.peek() != c {
		return s.fail("expected " + strconv.QuoteRune(rune(c)))
	}
	s.pos++
	return nil
}

// end checks that nothing but white space is left.
func (s *scanner) end() error {
	if s.peek(); s.pos < len(s.text) {
		return s.fail("bytes after the value")
	}
	return nil
}

func (s *scanner) enter(open byte) error {
	if err := s.take(open); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return s.fail(fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	return nil
}

// more steps to the next element of an object or array that closes with closer, and reports whether there is one.
func (s *scanner) more(first bool, closer byte) (bool, error) {
	switch c := s.peek(); {
	case c == closer:
		s.pos++
		s.depth--
		return false, nil
	case first:
		return true, nil
	case c == ',':
		s.pos++
		return true, nil
	}
	return false, s.fail("expected ',' or " + strconv.QuoteRune(rune(closer)))
}

// object reads an object. It calls field for every key, before its value, which field reads.
func (s *scanner) object(field func(key string) error) error {
	if err := s.enter('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		if more, err := s.more(first, '}'); !more || err != nil {
			return err
		}
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.take(':'); err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
	}
}

// array reads an array. It calls elem before every element, which elem reads.
func (s *scanner) array(elem func() error) error {
	if err := s.enter('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		if more, err := s.more(first, ']'); !more || err != nil {
			return err
		}
		if err := elem(); err != nil {
			return err
		}
	}
}

// str reads a string.
func (s *scanner) str() (string, error) {
	if err := s.take('"'); err != nil {
		return "", err
	}
	start := s.pos
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return s.text[start : s.pos-1], nil
		case c == '\\':
			return s.unescape(start)
		case c < ' ':
			return "", s.fail("control character in a string")
		}
	}
	return "", s.fail("string without end")
}

// unescape reads the rest of a string that began at start and has its first escape at pos.
func (s *scanner) unescape(start int) (string, error) {
	var b strings.Builder
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch {
		case c == '"':
			b.WriteString(s.text[start:s.pos])
			s.pos++
			return b.String(), nil
		case c < ' ':
			return "", s.fail("control character in a string")
		case c != '\\':
			s.pos++
			continue
		}
		b.WriteString(s.text[start:s.pos])
		r, err := s.escape()
		if err != nil {
			return "", err
		}
		b.WriteRune(r)
		start = s.pos
	}
	return "", s.fail("string without end")
}

// escape reads one escape, a surrogate pair included.
func (s *scanner) escape() (rune, error) {
	if s.pos+1 >= len(s.text) {
		return 0, s.fail("string without end")
	}
	c := s.text[s.pos+1]
	if c == 'u' {
		return s.unicodeEscape()
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		return 0, s.fail("unknown escape")
	}
	s.pos += 2
	return rune("\"\\/\b\f\n\r\t"[i]), nil
}

func (s *scanner) unicodeEscape() (rune, error) {
	r, err := s.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	low, err := s.hex4()
	if err != nil {
		return 0, s.fail("half a surrogate pair")
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, s.fail("half a surrogate pair")
	}
	return r, nil
}

// hex4 reads a \u and its four digits.
func (s *scanner) hex4() (rune, error) {
	if len(s.text)-s.pos < 6 || s.text[s.pos:s.pos+2] != `\u` {
		return 0, s.fail("expected \\u and four digits")
	}
	var r rune
	for _, c := range []byte(s.text[s.pos+2 : s.pos+6]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, s.fail("expected \\u and four digits")
		}
	}
	s.pos += 6
	return r, nil
}

// number reads a number and reports whether it was written as an integer of no sign.
func (s *scanner) number() (text string, natural bool, err error) {
	s.peek()
	start := s.pos
	digits := func() bool {
		from := s.pos
		for s.pos < len(s.text) && s.text[s.pos]-'0' <= 9 {
			s.pos++
		}
		return s.pos > from
	}
	accept := func(set string) bool {
		if s.pos < len(s.text) && strings.IndexByte(set, s.text[s.pos]) >= 0 {
			s.pos++
			return true
		}
		return false
	}
	natural = !accept("-")
	ok := accept("0") || digits()
	if ok && accept(".") {
		natural, ok = false, digits()
	}
	if ok && accept("eE") {
		accept("+-")
		natural, ok = false, digits()
	}
	if !ok {
		return "", false, s.fail("expected a number")
	}
	return s.text[start:s.pos], natural, nil
}

// uint reads an integer from 0 to 2^64-1 written in digits alone: 1.0, 1e3 and -0 are none, as in the reference.
func (s *scanner) uint() (uint64, error) {
	text, natural, err := s.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if !natural || err != nil {
		s.pos -= len(text)
		return 0, s.fail("expected an integer from 0 to 2^64-1")
	}
	return n, nil
}

// skip reads a value of any kind. As in the reference, a number must be finite as a float64.
func (s *scanner) skip() error {
	switch c := s.peek(); c {
	case '{':
		return s.object(func(string) error { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		_, err := s.str()
		return err
	case 't', 'f', 'n':
		for _, word := range [...]string{"true", "false", "null"} {
			if strings.HasPrefix(s.text[s.pos:], word) {
				s.pos += len(word)
				return nil
			}
		}
		return s.fail("expected a value")
	}
	text, _, err := s.number()
	if err != nil {
		return err
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || math.IsInf(f, 0) {
		return s.fail("number out of range")
	}
	return nil
}

// null reports whether the next value is null, and consumes it if so.
func (s *scanner) null() bool {
	if s.peek() != 'n' || !strings.HasPrefix(s.text[s.pos:], "null") {
		return false
	}
	s.pos += len("null")
	return true
}
