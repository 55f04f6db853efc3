#pragma once

#include <string>

#include "train/run/forecast.h"

namespace lockstep::launcher {

/// The forecasts of a config's strategies as a table, the fastest first, with what limits each.
std::string forecast_table(const std::string& config, const train::Forecast& forecast);

/// Returns the forecasts as one JSON object: config, ranks, hosts, parameters, tokens_per_step,
/// flops_per_step and strategies: strategy, shard_size (of HYBRID_SHARD), fits, limit, and problem
/// or step_ms, compute_ms, straggling_ms, exposed_comm_ms, tokens_per_s, utilization (where the
/// peak is known), sent_bytes and memory_bytes of a rank, and bucket_mib of copies.
std::string forecast_json(const std::string& config, const train::Forecast& forecast);

}  // namespace lockstep::launcher
