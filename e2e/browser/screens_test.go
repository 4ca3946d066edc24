package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

// looks are how a picture is taken of each page.
var looks = []struct {
	name   string
	width  int64
	isDark bool
}{{"light", 1280, false}, {"dark", 1280, true}, {"narrow", 360, false}}

// maxDocsHeight bounds the pictures of the documentation in pixels.
const maxDocsHeight = 1_250

// TestScreens takes pictures of the pages into the folder SCREENS: make screens. SCREENS_ONLY names those that are
// taken, such as now-dark, with at most their first maxDocsHeight pixels: make docs-screens. Without it all are taken.
func TestScreens(t *testing.T) {
	dir := os.Getenv("SCREENS")
	if dir == "" {
		return // no pictures are asked for
	}
	only := strings.Fields(os.Getenv("SCREENS_ONLY"))
	require.NoError(t, os.MkdirAll(dir, 0o750))
	s := startService(t, "")
	s.seed(t, "")
	s.open(t).signIn(rootToken) // the charts of the page Now, which it leads to, begin
	s.traffic(t)
	b := s.open(t) // tabs last two minutes
	b.signIn(rootToken)
	taken, maxHeight := 0, math.MaxInt
	if len(only) > 0 {
		maxHeight = maxDocsHeight
	}
	for _, p := range s.pages(t) {
		for _, look := range looks {
			name := p.name + "-" + look.name
			if len(only) > 0 && !slices.Contains(only, name) {
				continue
			}
			b.dark(look.isDark)
			b.do(chromedp.EmulateViewport(look.width, 800), chromedp.Navigate(s.url+p.path))
			b.wait(`document.readyState === 'complete'`)
			time.Sleep(300 * time.Millisecond) // the first live update
			picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), shrink(t, picture, maxHeight), 0o600))
			taken++
		}
	}
	if len(only) > 0 {
		require.Len(t, only, taken, "the names of SCREENS_ONLY are those of pages.txt and -light, -dark or -narrow")
	}
}

// shrink returns a picture with at most 256 colours, a third of its size: the 64 that it has most of, and of others
// that are similar the most frequent one. What is below maxHeight is left out.
func shrink(t *testing.T, picture []byte, maxHeight int) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	area := from.Bounds()
	area.Max.Y = min(area.Max.Y, maxHeight)
	count, similar := make(map[color.RGBA]int), make(map[color.RGBA]int)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			c := color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)
			count[c]++
			similar[coarse(c)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) })
	frequent := min(len(colors), 64)
	others := slices.Clone(colors[frequent:])
	slices.SortStableFunc(others,
		func(a, b color.RGBA) int { return cmp.Compare(similar[coarse(b)], similar[coarse(a)]) })
	var palette color.Palette
	for _, c := range colors[:frequent] {
		palette = append(palette, c)
	}
	taken := make(map[color.RGBA]bool)
	for _, c := range others {
		if len(palette) < 256 && !taken[coarse(c)] {
			taken[coarse(c)] = true
			palette = append(palette, c)
		}
	}
	to := image.NewPaletted(area, palette)
	draw.Draw(to, area, from, area.Min, draw.Src)
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to))
	return out.Bytes()
}

// coarse returns what similar colours share.
func coarse(c color.RGBA) color.RGBA {
	const bits = 0xf0
	return color.RGBA{R: c.R & bits, G: c.G & bits, B: c.B & bits, A: c.A}
}

// traffic registers jobs for two minutes, more and fewer a second, so that charts have something to show. Some fail at
// first, and a few die.
func (s *service) traffic(t *testing.T) {
	t.Helper()
	const lasts = 2 * time.Minute
	began := time.Now()
	for n := 0; time.Since(began) < lasts; n++ {
		job := client.Job{
			Topic: "shop.orders", Lane: "eu.pay.example.com:443", URL: "http://" + s.inbox + "/",
			Ladder: []time.Duration{time.Second, 2 * time.Second},
		}
		switch {
		case n%9 == 0:
			job.Lane, job.URL = "flaky.example.com:443", job.URL+"flaky"
		case n%60 == 1:
			job.Lane, job.URL, job.Retries = "old.example.com:443", job.URL+"status/410", new(0)
		}
		_, err := s.api.Register(t.Context(), job)
		require.NoError(t, err)
		time.Sleep(time.Duration((1.5 +
			math.Sin(4*math.Pi*time.Since(began).Seconds()/lasts.Seconds())) * float64(30*time.Millisecond)))
	}
}
