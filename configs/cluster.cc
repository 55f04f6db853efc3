#include "configs/cluster.h"

#include <fmt/format.h>

#include "configs/cluster.pb.h"
#include "configs/message.h"
#include "configs/origins.h"

namespace lockstep::config {

namespace {

void check_links(const ClusterConfig& cluster, const Origins& origins) {
  if (cluster.ranks_per_host() > 1 && !cluster.inside().has_gbit_per_second()) {
    fail(
        origins, "inside.gbit_per_second",
        fmt::format("inside.gbit_per_second is required, as a host has {} ranks: expected a number "
                    "above 0. Set the rate between two ranks of a host.",
                    cluster.ranks_per_host()));
  }
  if (cluster.hosts() > 1 && !cluster.between().has_gbit_per_second()) {
    fail(
        origins, "between.gbit_per_second",
        fmt::format("between.gbit_per_second is required, as there are {} hosts: expected a number "
                    "above 0. Set the rate of a host's link to the others.",
                    cluster.hosts()));
  }
}

void check_compute(const ClusterConfig& cluster, const Origins& origins) {
  if (!cluster.has_measured()) return;
  const MeasuredCompute& measured = cluster.measured();
  if (measured.update_ms() >= measured.step_ms()) {
    fail(origins, "measured.update_ms",
         fmt::format(
             "measured.update_ms is part of measured.step_ms: expected less than {}, got {}.",
             measured.step_ms(), measured.update_ms()));
  }
  const double passes = measured.step_ms() - measured.update_ms();
  if (measured.first_ready_ms() >= passes) {
    fail(origins, "measured.first_ready_ms",
         fmt::format(
             "measured.first_ready_ms is a time within the last backward: expected less than "
             "measured.step_ms - measured.update_ms, {}, got {}.",
             passes, measured.first_ready_ms()));
  }
}

void resolve_cluster(ClusterConfig& cluster, Origins& origins) {
  resolve_message(cluster, origins);
  check_links(cluster, origins);
  check_compute(cluster, origins);
}

}  // namespace

ClusterConfig load_cluster(const std::string& file, std::span<const std::string> overrides) {
  ClusterConfig cluster;
  Origins origins;
  merge_message_file(cluster, origins, file);
  for (const std::string& assignment : overrides) {
    set_message_value(cluster, origins, assignment, fmt::format("--set cluster.{}", assignment));
  }
  resolve_cluster(cluster, origins);
  return cluster;
}

ClusterConfig load_cluster_text(const std::string& text, const std::string& name) {
  ClusterConfig cluster;
  Origins origins;
  merge_message_text(cluster, origins, text, name);
  resolve_cluster(cluster, origins);
  return cluster;
}

}  // namespace lockstep::config
