package writer

import (
	"context"
	"fmt"
)

// everywhere is a table expression for a system table on all replicas that the address stands for: that server's own, or behind a balancer those of the cluster.
func (s *Server) everywhere(ctx context.Context, r *replicaState, table string) (string, error) {
	if !s.cfg.Balanced {
		return table, nil
	}
	cluster, err := s.cluster(ctx, r)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("clusterAllReplicas(%s, %s)", quoteText(cluster), table), nil
}

// cluster names the cluster behind a balancer: the macro {cluster}, else `default`, else the only one there is that has this server in it.
func (s *Server) cluster(ctx context.Context, r *replicaState) (string, error) {
	rows, err := s.read(ctx, r, 1, "SELECT DISTINCT cluster FROM system.clusters WHERE is_local ORDER BY cluster = getMacro('cluster') DESC, cluster = 'default' DESC, cluster")
	if err != nil {
		rows, err = s.read(ctx, r, 1, "SELECT DISTINCT cluster FROM system.clusters WHERE is_local ORDER BY cluster = 'default' DESC, cluster")
	}
	if err != nil {
		return "", err
	}
	if len(rows) == 0 {
		return "", fmt.Errorf("clickhouse %s: balanced, but no cluster in system.clusters has this server in it: name the replicas in clickhouse.addresses instead", r.addr)
	}
	return rows[0][0], nil
}
