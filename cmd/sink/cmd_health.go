package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/oncesink/oncesink/internal/config"
)

var healthCommand = &command{
	name: "health", summary: "asks a running sink whether it is alive, or ready",
	about: "For health checks of containers that have no shell: exit 0 for yes, 3 for no (the reasons are printed), 1 when nobody answers.",
	examples: []string{
		"sink health -c sink.yaml            # at the port of its http.listen",
		"sink health --url http://localhost:8080 --ready",
	},
	run: runHealth,
}

func runHealth(ctx context.Context, env *environment, args []string) error {
	f, url, ready, wait := env.options(), "", false, 5*time.Second
	load := f.config()
	f.text(&url, "url", "URL", "where the sink answers, instead of a configuration")
	f.flag(&ready, "ready", "whether all its partitions get on, too")
	f.duration(&wait, "timeout", "TIME", "how long an answer may take")
	if _, err := f.parse(args, 0); err != nil {
		return err
	}
	if url == "" {
		c, err := load()
		if err != nil {
			return err
		}
		if url, err = ownURL(c); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	path := "/healthz"
	if ready {
		path = "/readyz"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(url, "/")+path, nil)
	if err != nil {
		return f.usage("--url: %s", err)
	}
	return askHealth(env, request)
}

func askHealth(env *environment, request *http.Request) error {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", request.URL, errors.Unwrap(err))
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("ask %s: %w", request.URL, err)
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusServiceUnavailable:
	default:
		return fmt.Errorf("ask %s: %s; is this a sink?", request.URL, response.Status)
	}
	if _, err := env.stdout.Write(text); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return no("")
	}
	return nil
}

// ownURL is where this machine reaches the port of the configuration.
func ownURL(c *config.Config) (string, error) {
	if c.HTTP.Listen == "" {
		return "", usagef("health: http.listen is empty in %s, so that sink answers nobody", c.File())
	}
	host, port, err := net.SplitHostPort(c.HTTP.Listen)
	if err != nil {
		return "", usagef("health: http.listen: %s", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
