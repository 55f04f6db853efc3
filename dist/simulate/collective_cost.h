#pragma once

#include <cstdint>

#include "dist/collectives/operation.h"
#include "dist/simulate/cluster.h"

namespace lockstep::dist {

/// What an operation takes, in seconds.
struct CollectiveCost {
  double link = 0;     ///< during which the group's next operation cannot use the link
  double latency = 0;  ///< from then to the result
  double cpu = 0;      ///< processor time of each rank

  double seconds() const { return link + latency; }
};

/// Bytes per second that a host of the group sends to the others, less than the nominal rate where
/// pods are oversubscribed or congested. `crossing_all`: nearly all messages leave the pod, as when
/// every host sends to every other; else only those of a pod's last hosts do, as in a ring.
double rate_between(const Cluster& cluster, const GroupShape& group, bool crossing_all);

/// Predicts an all_reduce, all_gather or reduce_scatter of `bytes` (the whole tensor) over n ranks,
/// l on each of h hosts; `a` is a latency, `w` a rate, i of inside and b of between hosts. Half of
/// an all_reduce is a reduce_scatter or an all_gather:
///
///     direct        max(bytes (l-1)/n / wi, sharing l bytes (h-1)/h / wb), and a at the end
///     ring          max(bytes (n-1)/n / wi, sharing bytes (n-1)/n / wb) + (h-1) ab + (n-h) ai
///     hierarchical  max(bytes (l-1)/l / wi, sharing bytes (h-1)/h / wb), and ai + ab at the end,
///                   ai where l > 1 and ab where h > 1
///
/// and a whole all_reduce may also be, within hosts a chain and between them two trees,
///
///     tree          max(2 bytes / wi, 2 sharing bytes / wb) + 2 (l-1) ai + 2 ceil(log2 h) ab
///
/// Hierarchical is what dist/collectives/schedule.h does: with one host, or with one rank on each,
/// it is the same as direct. Sums of 16 bits, which travel in f32, are not distinguished. The ring
/// is that of Patarasuk & Yuan 2009, with the latencies of NCCL's own model (src/graph/tuning.cc);
/// the double binary tree is that of Sanders, Speck & Traeff 2009; linear costs of messages are
/// Hockney's (1994).
CollectiveCost collective_cost(OpKind kind, double bytes, const GroupShape& group,
                               const Cluster& cluster);

/// Bytes that a rank sends in it.
double sent_bytes(OpKind kind, double bytes, const GroupShape& group);

}  // namespace lockstep::dist
