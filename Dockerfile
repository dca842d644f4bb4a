# A static binary in an empty image, as an unprivileged user. Counts, bans and tokens
# are kept in /data, which the user 65532 must be able to write.
#
#   docker build -t lately .
#   docker run -d --name lately -v lately:/data -p 127.0.0.1:7379:7379 -p 127.0.0.1:7380:7380 lately
#   docker cp lately:/data/tokens - | tar -xO
#
# The listeners are open to the container's network, so clients need a token. The first
# start creates /data/tokens with a token for each role, and logs the path; the last
# command above prints them. If /data cannot be written, the server does not start.
#
# All settings below are defaults: change one with -e, or with a flag behind "serve".
# Other containers call the console by a name that it has to know: -e LATELY_HOST=lately.
# For TLS set LATELY_TLS_CERT and LATELY_TLS_KEY; without them, publish ports on
# loopback only, as above, or put a proxy in front that has TLS. To make everyone who
# can connect an admin: -e LATELY_TOKEN_FILE= -e LATELY_NO_TOKENS=true.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
# timetzdata: the empty image has no time zones, and rules may name some.
RUN CGO_ENABLED=0 go build -trimpath -tags timetzdata -ldflags "-s -w -X github.com/lately-go/lately/internal/cli.version=${VERSION}" -o /lately ./cmd/lately && mkdir /data /sockets

FROM scratch
COPY --from=build /lately /lately
COPY --from=build /src/examples/packs /usr/share/lately/packs
COPY --from=build --chown=65532:65532 /data /data
COPY --from=build --chown=65532:65532 /sockets /run/lately
USER 65532:65532
# docker stop waits for 10 s, so LATELY_SHUTDOWN_TIMEOUT is less.
ENV LATELY_RESP=0.0.0.0:7379 LATELY_HTTP=0.0.0.0:7380 LATELY_NO_TLS=true LATELY_DATA=/data LATELY_TOKEN_FILE=/data/tokens LATELY_SHUTDOWN_TIMEOUT=5s
VOLUME /data
EXPOSE 7379 7380
ENTRYPOINT ["/lately"]
CMD ["serve"]
