# The sink alone: no shell, no package manager, no root. The embedded servers of `sink dev` and `sink demo` are not in it.
FROM golang:1.26.8-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# docker build --build-arg VERSION="$(git describe --tags --always --dirty)" .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=$VERSION" -o /rootfs/sink ./cmd/sink
# The program loads the embedded engine as a library where there is one, so it is linked dynamically and needs libc and its loader: exactly those.
RUN ldd /rootfs/sink | grep -o '/[^ ]*' | xargs -I{} cp --parents -L {} /rootfs \
 && mkdir -p /rootfs/etc/ssl/certs /rootfs/etc/sink \
 && cp /etc/ssl/certs/ca-certificates.crt /rootfs/etc/ssl/certs/ \
 && echo 'sink:x:65532:65532::/:/sbin/nologin' > /rootfs/etc/passwd

FROM scratch
COPY --from=build /rootfs /
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/sink"]
CMD ["run", "-c", "/etc/sink/sink.yaml"]
