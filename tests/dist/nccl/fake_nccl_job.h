#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/group/thread_group.h"
#include "dist/nccl/nccl_group.h"
#include "tests/dist/nccl/fake_nccl.h"

namespace lockstep::dist {

/// A job whose ranks are threads, each with a stream and a group of its own on the host device,
/// over a fake NCCL.
struct FakeNcclJob {
  int size = 2;
  /// A start that hangs is to be seen before the test's own time is over.
  NcclOptions options{.start_timeout = std::chrono::seconds(30)};
  /// What a rank's device is called; one of its own for each without it.
  std::function<std::string(int rank)> identity;
  /// What a rank does before it makes its group.
  std::function<void(int rank)> before;
  /// And when it has ended, whatever it threw.
  std::function<void(int rank)> after;
  Communicator::Options communicator;
};

/// Runs `body` on each rank, and waits for all. What each rank threw; null where it did not.
std::vector<std::exception_ptr> run_nccl_ranks(const FakeNccl& fake, const FakeNcclJob& job,
                                               const std::function<void(NcclGroup&)>& body);
/// The same where none should throw.
void all_nccl_ranks(const FakeNccl& fake, const FakeNcclJob& job,
                    const std::function<void(NcclGroup&)>& body);

/// Where the groups' tensors are.
inline constexpr Device kHostDevice{DeviceType::kHost, 0};

}  // namespace lockstep::dist
