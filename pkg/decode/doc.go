package decode
