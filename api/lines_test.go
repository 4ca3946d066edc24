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

// inPieces reads text as it would arrive: size bytes at a time, then err.
type inPieces struct {
	text string
	size int
	err  error
}

func (p *inPieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, p.err
	}
	n := copy(b, p.text[:min(p.size, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

// allLines are those of a stream, and how it ended.
func allLines(l *lines, most int) (all []line, err error) {
	for {
		group, err := l.next(most)
		if err != nil {
			return all, err
		}
		all = append(all, group...)
	}
}

func TestLinesAreToldApartHoweverTheyArrive(t *testing.T) {
	const text = "a\n\n  b\t\r\n" + "12345678901\n" + "1234567890\n \t\r\n" + "this one is far too long, and then some\nc"
	want := []line{
		{n: 1, text: []byte("a")},
		{n: 3, text: []byte("b")},
		{n: 4, long: true},
		{n: 5, text: []byte("1234567890")},
		{n: 7, long: true},
		{n: 8, text: []byte("c")},
	}
	for size := 1; size <= len(text); size++ {
		l := lines{from: &inPieces{text, size, io.EOF}, longest: 10}
		all, err := allLines(&l, 1+size%3)
		require.Equal(t, io.EOF, err)
		require.Equal(t, want, all, "%d B at a time", size)
	}
	l := lines{from: iotest.DataErrReader(strings.NewReader(text)), longest: 10}
	all, err := allLines(&l, 100)
	require.Equal(t, io.EOF, err)
	require.Equal(t, want, all)
}

func TestAByteOrderMarkIsSkippedAtTheVeryBeginningAlone(t *testing.T) {
	for text, want := range map[string][]line{
		byteOrderMark: nil,
		byteOrderMark + "1234567890\n" + byteOrderMark + "b": {
			{n: 1, text: []byte("1234567890")}, {n: 2, text: []byte(byteOrderMark + "b")},
		},
		byteOrderMark + "12345678901": {{n: 1, long: true}},
		byteOrderMark + byteOrderMark: {{n: 1, text: []byte(byteOrderMark)}},
		"\n" + byteOrderMark:          {{n: 2, text: []byte(byteOrderMark)}},
		"a\n" + byteOrderMark:         {{n: 1, text: []byte("a")}, {n: 2, text: []byte(byteOrderMark)}},
		byteOrderMark[:2]:             {{n: 1, text: []byte(byteOrderMark[:2])}},
	} {
		for size := 1; size <= len(text); size++ {
			l := lines{from: &inPieces{text, size, io.EOF}, longest: 10}
			all, err := allLines(&l, 100)
			require.Equal(t, io.EOF, err)
			require.Equal(t, want, all, "%q, %d B at a time", text, size)
		}
	}
}

func TestALineThatIsCutOffIsNotGiven(t *testing.T) {
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
		l := lines{from: &inPieces{text, 100, reset}, longest: 10}
		all, err := allLines(&l, 100)
		require.Equal(t, reset, err)
		require.Len(t, all, c.given, "%q", text)
		at, halfway := l.halfway()
		require.Equal(t, c.at, at, "%q", text)
		require.Equal(t, c.halfway, halfway, "%q", text)
	}
}

func TestOnlyTheFirstLineIsWaitedFor(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	l := lines{from: r, longest: 100}
	go func() { _, _ = io.WriteString(w, "a\nb\nc") }()
	group, err := l.next(100)
	require.NoError(t, err)
	require.Len(t, group, 2, "the third has not ended")
}

func TestNothingIsWrittenOverALineThatWasGivenOut(t *testing.T) {
	var text, want []byte
	for i := range 3000 {
		one := bytes.Repeat([]byte{byte('a' + i%26)}, 1+i%97)
		want = append(want, one...)
		text = append(append(text, one...), '\n')
	}
	l := lines{from: &inPieces{string(text), 1000, io.EOF}, longest: 100}
	all, err := allLines(&l, 7)
	require.Equal(t, io.EOF, err)
	var got []byte
	for _, one := range all {
		got = append(got, one.text...)
	}
	require.Equal(t, want, got)
}

func TestTheRestOfALineThatIsTooLongIsNotKept(t *testing.T) {
	endless := io.MultiReader(
		io.LimitReader(zeros{}, 16<<20), strings.NewReader("\nb\n"), io.LimitReader(zeros{}, 16<<20),
	)
	l := lines{from: endless, longest: 100 << 10}
	all, err := allLines(&l, 100)
	require.Equal(t, io.EOF, err)
	require.Equal(t, []line{{n: 1, long: true}, {n: 2, text: []byte("b")}, {n: 3, long: true}}, all)
	require.Less(t, cap(l.buf), 4<<20)
}

// zeros is an endless run of the digit 0.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}
