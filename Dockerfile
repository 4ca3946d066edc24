# A static binary on nothing, run by nobody in particular.
#
#   docker build -t ringback .
#   docker run -p 8080:8080 -e RINGBACK_TOKEN=… -v ringback:/data ringback
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/ringback ./cmd/ringback \
 && mkdir /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ringback /ringback
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/ringback"]
CMD ["serve", "--addr=0.0.0.0:8080", "--store=sqlite:/data/ringback.db"]
