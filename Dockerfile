# A static binary in an empty image, as an unprivileged user. Counts and bans are
# kept in /data, which the user 65532 must be able to write.
#
#   docker build -t lately .
#   docker run -v lately:/data -p 127.0.0.1:7379:7379 -p 127.0.0.1:7380:7380 lately
#
# Inside a container loopback is the container itself, so the listeners are open to
# its network: without tokens and TLS that must be said by name (--insecure), and
# the ports published on the host's loopback only, as above. Other containers call it
# by a name that it has to know: -e LATELY_HOST=lately. Every flag has such a variable.
# docker stop waits for 10 s, so --drain is less.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
# timetzdata: the empty image has no time zones, and rules may name some.
RUN CGO_ENABLED=0 go build -trimpath -tags timetzdata -ldflags "-s -w -X main.version=${VERSION}" -o /lately ./cmd/lately && mkdir /data

FROM scratch
COPY --from=build /lately /lately
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
VOLUME /data
EXPOSE 7379 7380
ENTRYPOINT ["/lately"]
CMD ["serve", "--resp", "0.0.0.0:7379", "--http", "0.0.0.0:7380", "--data", "/data", "--drain", "5s", "--insecure"]
