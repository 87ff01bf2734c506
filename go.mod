module github.com/wcodec/wcodec

go 1.26
