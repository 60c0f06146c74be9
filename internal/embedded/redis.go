package embedded

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/oncesink/oncesink/internal/embedded/child"
)

// RedisOptions say where and how the embedded Redis runs.
type RedisOptions struct {
	Port    int       // on loopback; 0: a free one
	DataDir string    // "": nothing is kept over a restart
	Args    []string  // further arguments of redis-server
	Output  io.Writer // the server's log and, without a redis-server, what the stand-in lacks
	// InProcess asks for the stand-in even where a redis-server is found.
	InProcess bool
}

// Redis is a real redis-server as a child process or, where there is none, a stand-in in this process.
type Redis struct {
	Addr string

	proc *child.Process
	mini *miniredis.Miniredis
}

// StartRedis starts a Redis and returns when it answers.
func StartRedis(ctx context.Context, o RedisOptions) (*Redis, error) {
	if o.Output == nil {
		o.Output = io.Discard
	}
	binary := FindRedis()
	if o.InProcess || binary == "" {
		return startInProcess(o)
	}
	var r *Redis
	err := withPort(o.Port == 0, func() (err error) {
		r, err = startServer(ctx, o, binary)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	return r, nil
}

func startServer(ctx context.Context, o RedisOptions, binary string) (*Redis, error) {
	port, err := portOr(o.Port)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--daemonize", "no", "--maxmemory-policy", "noeviction", "--save", "",
		"--loglevel", "warning",
	}
	if o.DataDir != "" {
		if err := os.MkdirAll(o.DataDir, 0o755); err != nil {
			return nil, err
		}
		args = append(args, "--dir", o.DataDir, "--appendonly", "yes")
	}
	r := &Redis{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	r.proc, err = child.Start(child.Options{
		Name: "redis-server", Path: binary, Args: append(args, o.Args...), Dir: o.DataDir, Output: o.Output, DeathSignal: syscall.SIGTERM,
	})
	if err != nil {
		return nil, err
	}
	if err := r.waitReady(ctx); err != nil {
		r.proc.Kill()
		return nil, fmt.Errorf("on %s: %w", r.Addr, err)
	}
	return r, nil
}

// FindRedis is the redis-server that the installer unpacked or that is on PATH, or "".
func FindRedis() string {
	if path := inCache("redis/bin/redis-server"); path != "" {
		return path
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return ""
	}
	return path
}

// waitReady returns when this very process answers and has loaded its data: on a port that was taken, a stranger would answer.
func (r *Redis) waitReady(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: r.Addr, MaxRetries: -1, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := client.Info(ctx, "server", "persistence").Result()
		if err == nil && strings.Contains(info, "loading:0") {
			if want := fmt.Sprintf("process_id:%d\r\n", r.proc.PID()); !strings.Contains(info, want) {
				return fmt.Errorf("another Redis serves this port, it is not process %d: choose another port", r.proc.PID())
			}
			return nil
		}
		select {
		case <-r.proc.Exited():
			return r.proc.Failure()
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (last: %w)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func startInProcess(o RedisOptions) (*Redis, error) {
	mini := miniredis.NewMiniRedis()
	if err := mini.StartAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port))); err != nil {
		return nil, fmt.Errorf("start the in-process Redis on port %d: %w", o.Port, err)
	}
	identify(mini)
	_, _ = fmt.Fprint(o.Output, "redis: no redis-server was found (make setup fetches one on Debian and Ubuntu), so an in-process stand-in serves. It keeps nothing over a restart, "+
		"knows fewer commands, and keys expire only while it runs.\n")
	return &Redis{Addr: mini.Addr(), mini: mini}, nil
}

// identify has the stand-in answer what a sink asks of a server's identity and
// memory policy, which it does not know by itself. A new one has a new run id,
// since it starts empty.
func identify(mini *miniredis.Miniredis) {
	runID, replID := rand.Text(), rand.Text()
	mini.Server().SetPreHook(func(p *miniserver.Peer, cmd string, _ ...string) bool {
		switch strings.ToUpper(cmd) {
		case "INFO":
			p.WriteBulk("redis_version:7.0.0\r\nrun_id:" + runID + "\r\ncluster_enabled:0\r\nrole:master\r\nmaster_replid:" + replID + "\r\n")
		case "CONFIG":
			p.WriteStrings([]string{"maxmemory-policy", "noeviction", "maxmemory", "0", "hash-max-listpack-entries", "512", "hash-max-listpack-value", "64"})
		default:
			return false
		}
		return true
	})
}

// InProcess tells whether this is the stand-in.
func (r *Redis) InProcess() bool { return r.mini != nil }

// PID is the process id of redis-server, 0 for the stand-in.
func (r *Redis) PID() int {
	if r.InProcess() {
		return 0
	}
	return r.proc.PID()
}

// Exited is closed when redis-server has ended; for the stand-in it is nil.
func (r *Redis) Exited() <-chan struct{} {
	if r.InProcess() {
		return nil
	}
	return r.proc.Exited()
}

// Stop ends the server after it has written its data.
func (r *Redis) Stop(ctx context.Context) error {
	if r.InProcess() {
		r.mini.Close()
		return nil
	}
	return r.proc.Stop(ctx)
}

// Kill is kill -9. With a data folder up to one second of writes can be lost.
func (r *Redis) Kill() {
	if r.InProcess() {
		r.mini.Close()
		return
	}
	r.proc.Kill()
}

// Pause freezes redis-server: open connections get no answer any more. The stand-in can't be paused.
func (r *Redis) Pause() { r.proc.Pause() }

// Resume ends a Pause.
func (r *Redis) Resume() { r.proc.Resume() }
