#pragma once

#include <string>
#include <vector>

#include "core/cuda/device_facts.h"
#include "core/cuda/device_state.h"
#include "train/report/health.h"

/// What NVML's answers mean for training.
namespace lockstep::launcher {

/// Memory errors, temperature and power, other processes and links of the GPU, as it is at rest;
/// `name` is "cuda:0". One check that says why if NVML does not answer.
std::vector<train::Check> state_checks(const std::string& name, const cuda::DeviceState& state);

/// Clocks while the GPU works: a warning below 70 % of the highest, or where heat or the power
/// supply hold them back, and a failure below 30 %. Nothing if NVML does not tell.
std::vector<train::Check> clock_check(const std::string& name, const cuda::DeviceState& working);

}  // namespace lockstep::launcher
