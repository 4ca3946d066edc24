package db

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
)

// Int returns an integer column; NULL is 0.
func Int(v driver.Value) int64 { i, _ := v.(int64); return i }

// Text returns a text column; NULL is empty.
func Text(v driver.Value) string { s, _ := v.(string); return s }

// Blob returns a blob column; NULL is nil.
func Blob(v driver.Value) []byte { b, _ := v.([]byte); return b }

// NullZero stores zero as NULL.
func NullZero(n int64) driver.Value {
	if n == 0 {
		return nil
	}
	return n
}

// NullEmpty stores the empty string as NULL.
func NullEmpty(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}

// JSON returns the JSON form of a value that always has one.
func JSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("db: a value without a JSON form: %v", err))
	}
	return string(raw)
}
