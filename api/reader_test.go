package api

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// oneByteReader reads size bytes of a text at a time, then returns err.
type oneByteReader struct {
	text string
	size int
	err  error
}

func (p *oneByteReader) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, p.err
	}
	n := copy(b, p.text[:min(p.size, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

// allLines returns the lines of a stream, and its error.
func allLines(l *reader, most int) (all []line, err error) {
	for {
		group, err := l.Next(most)
		if err != nil {
			return all, err
		}
		all = append(all, group...)
	}
}

func TestReader_SplitsLinesHoweverTheyArrive(t *testing.T) {
	const text = "a\n\n  b\t\r\n" + "12345678901\n" + "1234567890\n \t\r\n" +
		"this one is far too long, and then some\nc"
	want := []line{
		{N: 1, Text: []byte("a")},
		{N: 3, Text: []byte("b")},
		{N: 4, TooLong: true},
		{N: 5, Text: []byte("1234567890")},
		{N: 7, TooLong: true},
		{N: 8, Text: []byte("c")},
	}
	for size := 1; size <= len(text); size++ {
		l := reader{r: &oneByteReader{text, size, io.EOF}, maxLine: 10}
		all, err := allLines(&l, 1+size%3)
		require.Equal(t, io.EOF, err)
		require.Equal(t, want, all, "%d B at a time", size)
	}
	l := reader{r: iotest.DataErrReader(strings.NewReader(text)), maxLine: 10}
	all, err := allLines(&l, 100)
	require.Equal(t, io.EOF, err)
	require.Equal(t, want, all)
}

const byteOrderMark = "\xef\xbb\xbf"

func TestReader_SkipsAByteOrderMarkOfALine(t *testing.T) {
	for text, want := range map[string][]line{
		byteOrderMark: nil,
		byteOrderMark + "1234567\n" + byteOrderMark +
			" b\r\n": {{N: 1, Text: []byte("1234567")}, {N: 2, Text: []byte("b")}},
		byteOrderMark + "12345678":    {{N: 1, TooLong: true}}, // it is a part of the line
		byteOrderMark + byteOrderMark: {{N: 1, Text: []byte(byteOrderMark)}},
		"a\n" + byteOrderMark:         {{N: 1, Text: []byte("a")}},
		"a" + byteOrderMark:           {{N: 1, Text: []byte("a" + byteOrderMark)}},
		byteOrderMark[:2]:             {{N: 1, Text: []byte(byteOrderMark[:2])}},
	} {
		for size := 1; size <= len(text); size++ {
			l := reader{r: &oneByteReader{text, size, io.EOF}, maxLine: 10}
			all, err := allLines(&l, 100)
			require.Equal(t, io.EOF, err)
			require.Equal(t, want, all, "%q, %d B at a time", text, size)
		}
	}
}

func TestReader_DropsATruncatedLine(t *testing.T) {
	reset := errors.New("reset")
	for text, c := range map[string]struct {
		given, at int
		halfway   bool
	}{
		"":             {0, 1, false},
		"a\nb\n":       {2, 3, false},
		"a\nb":         {1, 2, true},
		"a\nb\n \t":    {2, 3, false},
		"12345678901":  {1, 1, true},
		"a\n1234567\n": {2, 3, false},
	} {
		l := reader{r: &oneByteReader{text, 100, reset}, maxLine: 10}
		all, err := allLines(&l, 100)
		require.Equal(t, reset, err)
		require.Len(t, all, c.given, "%q", text)
		at, halfway := l.Partial()
		require.Equal(t, c.at, at, "%q", text)
		require.Equal(t, c.halfway, halfway, "%q", text)
	}
}

func TestReader_WaitsForTheFirstLineOnly(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	l := reader{r: r, maxLine: 100}
	go func() { _, _ = io.WriteString(w, "a\nb\nc") }()
	group, err := l.Next(100)
	require.NoError(t, err)
	require.Len(t, group, 2, "the third has not ended")
}

func TestReader_DoesNotOverwriteReturnedLines(t *testing.T) {
	var text, want []byte
	for i := range 3000 {
		one := bytes.Repeat([]byte{byte('a' + i%26)}, 1+i%97)
		want = append(want, one...)
		text = append(append(text, one...), '\n')
	}
	l := reader{r: &oneByteReader{string(text), 1000, io.EOF}, maxLine: 100}
	all, err := allLines(&l, 7)
	require.Equal(t, io.EOF, err)
	var got []byte
	for _, one := range all {
		got = append(got, one.Text...)
	}
	require.Equal(t, want, got)
}

func TestReader_DoesNotKeepTheRestOfALongLine(t *testing.T) {
	endless := io.MultiReader(
		io.LimitReader(zeros{}, 16<<20), strings.NewReader("\nb\n"), io.LimitReader(zeros{}, 16<<20),
	)
	l := reader{r: endless, maxLine: 100 << 10}
	all, err := allLines(&l, 100)
	require.Equal(t, io.EOF, err)
	require.Equal(t, []line{{N: 1, TooLong: true}, {N: 2, Text: []byte("b")}, {N: 3, TooLong: true}}, all)
	require.Less(t, cap(l.buf), 4<<20)
}

// zeros is an endless sequence of the digit 0.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

// FuzzReader compares the reader with one that has the whole text.
func FuzzReader(f *testing.F) {
	f.Add("a\n\n b\r\n0123456789\n01234567890\nc", 3, 2, true)
	f.Add("a\nb", 1, 1, false)
	f.Fuzz(func(t *testing.T, text string, size, most int, whole bool) {
		const longest = 10
		var want []line
		all := strings.Split(text, "\n")
		for i, one := range all {
			trimmed := strings.Trim(one, " \t\r")
			last := i == len(all)-1
			switch {
			case len(one) > longest:
				want = append(want, line{N: i + 1, TooLong: true})
			case last && !whole, trimmed == "":
			default:
				want = append(want, line{N: i + 1, Text: []byte(trimmed)})
			}
		}
		end := io.EOF
		if !whole {
			end = io.ErrUnexpectedEOF
		}
		l := reader{r: &oneByteReader{text, max(size, 1), end}, maxLine: longest}
		got, err := allLines(&l, max(most, 1))
		require.Equal(t, end, err)
		require.Equal(t, want, got)
	})
}
