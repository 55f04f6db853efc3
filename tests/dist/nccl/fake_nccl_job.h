#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/factory/factory.h"
#include "dist/group/thread_group.h"
#include "dist/nccl/nccl_group.h"
#include "tests/dist/nccl/fake_nccl.h"

namespace lockstep::dist {

/// A job over a fake NCCL whose ranks are threads, each with its own stream and group on the host
/// device.
struct FakeNcclJob {
  int size = 2;
  /// A start that hangs must fail before the test itself times out.
  NcclOptions options{.start_timeout = std::chrono::seconds(30)};
  /// Name of a rank's device; if not set, each rank has a different one.
  std::function<std::string(int rank)> identity;
  /// Called on each rank before it makes its group.
  std::function<void(int rank)> before;
  /// Called on each rank after it has ended, even with an error.
  std::function<void(int rank)> after;
  Communicator::Options communicator;
};

/// Runs `body` on each rank, and joins them. Returns each rank's error, or null.
std::vector<std::exception_ptr> run_nccl_ranks(const FakeNccl& fake, const FakeNcclJob& job,
                                               const std::function<void(NcclGroup&)>& body);
/// Runs `body` on each rank, and expects no error.
void all_nccl_ranks(const FakeNccl& fake, const FakeNcclJob& job,
                    const std::function<void(NcclGroup&)>& body);

/// Device of the groups' tensors.
inline constexpr Device kHostDevice{DeviceType::kHost, 0};
/// A vector of ones there.
inline Tensor host_ones(int64_t count, DType dtype = DType::kF32) {
  return empty({count}, {dtype, kHostDevice}).fill_(1);
}

}  // namespace lockstep::dist
