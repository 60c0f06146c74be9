package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server answers on one port until Shutdown.
type Server struct {
	listener net.Listener
	http     *http.Server
	done     chan struct{}
	failed   error // why serving ended, to be read after done
}

// Serve listens and starts to answer. An address that can't be had is an error at once. With "" nobody is answered.
func (s *Status) Serve(listen string) (*Server, error) {
	if listen == "" {
		return &Server{}, nil
	}
	listener, err := net.Listen("tcp", listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("http.listen %s: another process has this port; stop it, or set http.listen to another one (empty: no HTTP)", listen)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("http.listen %s: this user may not open this port; ports below 1024 are kept back, choose a higher one", listen)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("http.listen %s: this machine doesn't have this address; use \":port\" for all it has", listen)
	case err != nil:
		return nil, fmt.Errorf("http.listen %s: %w", listen, err)
	}
	server := &Server{
		listener: listener,
		http:     &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute},
		done:     make(chan struct{}),
	}
	go func() {
		defer close(server.done)
		if err := server.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			server.failed = fmt.Errorf("serve HTTP on %s: %w", listener.Addr(), err)
		}
	}()
	return server, nil
}

// Addr is where it listens, with the port that was free when 0 was asked for.
func (s *Server) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Shutdown lets the requests under way finish until ctx is done, then cuts them.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.listener == nil {
		return nil
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop HTTP on %s: %w", s.Addr(), err), s.http.Close())
	}
	<-s.done
	return errors.Join(err, s.failed)
}

// Handler is all pages, for a server of one's own.
func (s *Status) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		ok, why := s.alive()
		probe(w, ok, sentence("alive", why))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ok, why := s.ready()
		probe(w, ok, sentence("ready", why))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.view()) // fails only when the reader has gone
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		var page bytes.Buffer // a template that fails half-way must not leave half a page with status 200
		if err := pageTemplate.Execute(&page, s.view()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = w.Write(page.Bytes())
	})
	return mux
}

func probe(w http.ResponseWriter, ok bool, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write([]byte(text))
}
