#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "dist/group/communicator.h"
#include "dist/group/process_group.h"
#include "dist/nccl/nccl_buffer.h"
#include "dist/nccl/nccl_config.h"
#include "dist/nccl/nccl_device.h"
#include "dist/nccl/nccl_library.h"

namespace lockstep::dist {

struct NcclOptions {
  NcclConfig config;
  /// How long the ranks may take to come together, at the start and for a subgroup.
  std::chrono::milliseconds start_timeout = std::chrono::minutes(2);
  /// Bytes of one call of NCCL at most.
  size_t chunk_bytes = size_t{1} << 30;
  /// Whether ranks compare each call over the cpu's transport before they make it: a call that does
  /// not fit is a MismatchError on all, and a rank that does not come is named. For finding faults:
  /// calls then wait for each other.
  bool compare_calls = false;
  /// Whether a failure leaves the communicator for `shrink`; else it is aborted at once.
  bool keep_for_shrink = false;
};

/// A group whose ranks have a GPU each, for tensors of that GPU through NCCL, and for tensors of
/// the cpu through the job's own transport (dist/group/transport_group.h).
///
/// What ProcessGroup promises holds, with these differences on the device:
/// - **Sums are in NCCL's order**, not that of ranks: the same on all ranks and in every run on one
///   arrangement of machines, NCCL version and settings, and another on another one. 16 bits are
///   summed as NCCL does it. tree_all_reduce alone has the order that all groups have
///   (dist/nccl/nccl_tree.h).
/// - Operations that do not fit each other are told apart with NcclOptions::compare_calls alone;
///   without it they end with TimeoutError or NCCL's words. Messages always are
///   (dist/nccl/nccl_messages.h).
/// - A call may block until the other ranks have made theirs: NCCL connects ranks at their first
///   operations. So first uses of several groups must have one order on all ranks.
/// - Work::wait of a send or recv blocks until it is done on this rank.
/// - int16 is reduced as int32, in memory of its own.
///
/// An operation's time runs from when the work queued before it is done. Whatever goes wrong, on
/// any rank, aborts the communicators of all, so that nothing stays on the devices. The destructor
/// waits for what is pending, and up to 30 s for the other ranks to destroy theirs.
class NcclGroup : public ProcessGroup {
 public:
  /// `tensor` is dense, and of the group's device. Best done once for memory that stays.
  virtual NcclBuffer register_buffer(const Tensor& tensor) = 0;

  /// The group of the ranks that remain, over the communication that they have among themselves
  /// (in the order that they had); they all call it, with the same `excluded`. For use after a
  /// failure with NcclOptions::keep_for_shrink; this group's operations all fail from then on.
  /// Throws BackendError where the library is older than 2.27.
  virtual std::unique_ptr<NcclGroup> shrink(std::vector<int> excluded,
                                            std::shared_ptr<Communicator> remaining) = 0;

 protected:
  using ProcessGroup::ProcessGroup;
};

/// The group of all ranks of a communicator, each with its `device`. All call it; rank 0 makes the
/// identifier by which NCCL finds them. Throws, on all ranks alike: BackendError where two ranks
/// have one device, or their libraries differ in version, or NCCL fails; TimeoutError when a rank
/// does not come within the start's time.
std::unique_ptr<NcclGroup> nccl_group(std::shared_ptr<Communicator> communicator,
                                      std::shared_ptr<const NcclLibrary> library,
                                      std::shared_ptr<const NcclDevice> device,
                                      const NcclOptions& options = {});
/// The same where the ranks have talked before, by `base`, the group of all of them over
/// `communicator`.
std::unique_ptr<NcclGroup> nccl_group(std::shared_ptr<Communicator> communicator,
                                      std::unique_ptr<ProcessGroup> base,
                                      std::shared_ptr<const NcclLibrary> library,
                                      std::shared_ptr<const NcclDevice> device,
                                      const NcclOptions& options = {});

}  // namespace lockstep::dist
