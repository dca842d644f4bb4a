module github.com/lately-go/lately/adapters/echo

go 1.26.0

require (
	github.com/labstack/echo/v5 v5.3.1
	github.com/lately-go/lately v0.0.0
)

replace github.com/lately-go/lately => ../..
