#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tensor/device.h"
#include "train/report/health.h"

/// What GPUs of this machine are to each other.
namespace lockstep::launcher {

/// The slowest copy between two GPUs so far, in bytes a second, if all go directly.
struct PeerCopies {
  std::optional<double> slowest = {};
  bool all_direct = true;
};

/// Which of the GPUs `from` reaches by itself, and how fast copies to each are, which is added to
/// `copies`.
std::vector<train::Check> peer_checks(Device from, const std::vector<Device>& all,
                                      PeerCopies& copies);

/// What NCCL, which chooses for itself, may use between these GPUs and hosts: sums in the switches
/// (NVLS) and sends through the GPU beside the network card (PXN), and its variables that are set.
std::string nccl_ways(const std::vector<Device>& all);

/// NCCL's all_reduce over the GPUs, whose ranks are threads of this process: a warning if its rate
/// is less than half of what `copies` of the driver reach.
std::vector<train::Check> nccl_checks(const std::vector<Device>& all, const PeerCopies& copies);

}  // namespace lockstep::launcher
