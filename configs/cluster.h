#pragma once

#include <span>
#include <string>

#include "configs/load.h"

/// Descriptions of clusters: text files of the schema in configs/cluster.proto. To use the returned
/// message, include "configs/cluster.pb.h" in the .cc file.
namespace lockstep::config {

class ClusterConfig;

/// Reads `file`, applies `overrides` ("between.latency_us=10"), sets defaults and checks ranges,
/// required fields, and that a link has a rate where ranks use it. Throws SourceError for the first
/// error; an override is named as "--set cluster.PATH=VALUE".
ClusterConfig load_cluster(const std::string& file, std::span<const std::string> overrides = {});

/// Loads a cluster from a text in memory; `name` is used as file name in messages.
ClusterConfig load_cluster_text(const std::string& text, const std::string& name = "cluster.txtpb");

}  // namespace lockstep::config
