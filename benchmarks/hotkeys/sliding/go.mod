module github.com/lately-go/lately/benchmarks/hotkeys/sliding

go 1.26.0

require (
	github.com/keilerkonzept/topk v1.1.4
	github.com/lately-go/lately/benchmarks v0.0.0
)

require (
	github.com/OneOfOne/xxhash v1.2.8 // indirect
	github.com/go-kratos/aegis v0.2.0 // indirect
	github.com/lately-go/lately v0.0.0 // indirect
	github.com/twmb/murmur3 v1.1.6 // indirect
)

replace (
	github.com/lately-go/lately => ../../../
	github.com/lately-go/lately/benchmarks => ../../
)
