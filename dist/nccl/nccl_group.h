#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/group/communicator.h"
#include "dist/group/process_group.h"
#include "dist/nccl/nccl_buffer.h"
#include "dist/nccl/nccl_config.h"
#include "dist/nccl/nccl_device.h"
#include "dist/nccl/nccl_library.h"

namespace lockstep::dist {

struct NcclOptions {
  NcclConfig config = {};
  /// Timeout for all ranks to arrive, at the start and when a subgroup is made.
  std::chrono::milliseconds start_timeout = std::chrono::minutes(2);
  /// Largest size of one NCCL call in bytes.
  size_t chunk_bytes = size_t{1} << 30;
  /// Whether ranks compare each call over the cpu's transport before they make it. A call that
  /// differs is then a MismatchError on all ranks, and a missing rank is named. For debugging:
  /// ranks synchronise at every call.
  bool compare_calls = false;
  /// Whether the ranks are connected at the start, by small and large sums, instead of at their
  /// first operations: what keeps them from it is then an error within `start_timeout`.
  bool connect_at_start = false;
  /// Whether each call first looks for NaN in what this rank gives, and fails the job with a
  /// DistError that names it, before it spreads. For debugging: it waits for the device.
  bool check_values = false;
  /// Ranks for which one ncclUniqueId serves: more ranks take several, whose owners share the work
  /// of connecting them (ncclCommInitRankScalable, from 2.23 on).
  int ranks_of_an_id = 128;
  /// Time without a sign of the thread that watches operations after which the job fails.
  std::chrono::milliseconds heartbeat_limit = std::chrono::minutes(2);
  /// Multiprocessors that this process' matrix products leave to NCCL from the start of a group of
  /// several ranks on (core/device/spared_processors.h).
  int spared_processors = 0;
  /// Whether `registered_memory` gives memory.
  bool user_buffers = false;
  /// Called by rank 0, once, with the reason why `user_buffers` has no effect, as a sentence.
  std::function<void(const std::string& reason)> on_no_buffers = {};
  /// Whether a failure keeps the communicator for `shrink`; else it is aborted at once.
  bool keep_for_shrink = false;
};

/// A group whose ranks have a GPU each. Tensors on that GPU go through NCCL, tensors on the cpu
/// through the job's transport (dist/group/transport_group.h).
///
/// The contract of ProcessGroup holds, with these differences for tensors on the GPU:
/// - **Sums are in NCCL's order**, not in that of ranks: equal on all ranks and in every run with
///   the same machines, NCCL version and settings,
///   but different for others. The accumulation of 16-bit
///   types is NCCL's. Only tree_all_reduce has the same order as in all groups
///   (dist/nccl/nccl_tree.h).
/// - Mismatched operations are a MismatchError on all ranks a few seconds after the later call, if
///   one of them hangs on a rank (dist/nccl/nccl_comparison.h). If NCCL ends them all, with wrong
///   data, only NcclOptions::compare_calls detects them. Mismatched messages are always detected
///   (dist/nccl/nccl_messages.h).
/// - A call returns before NCCL has queued the operation, which a thread of the group does: NCCL
///   connects ranks at their first operations, and waits for those who are late. Work::wait blocks
///   until it is queued, and throws its error. Operations of groups that are made from one another
///   are queued in the order of their calls; it must be the same on all ranks.
/// - Work::wait of a send or recv blocks until it is done on this rank.
/// - int16 is reduced as int32, in temporary memory.
///
/// The timeout of an operation starts when the work queued before it is done. An error on any rank
/// aborts the communicators of all, so that nothing remains on the devices. The destructor waits
/// for pending operations, and up to 30 s for the other ranks to destroy their groups.
class NcclGroup : public ProcessGroup {
 public:
  /// Registers a contiguous tensor of the group's device with NCCL, after the operations before.
  /// Its memory must be one allocation of the driver: NCCL may map the first one alone into other
  /// processes. `registered_memory` has such memory. Intended for long-lived memory.
  virtual NcclBuffer register_buffer(const Tensor& tensor) = 0;

  /// Returns a group of the remaining ranks, over `remaining`, their own communicator (in the same
  /// order). Called by all of them with the same `excluded`. For use after a failure with
  /// NcclOptions::keep_for_shrink; all later operations of this group fail. Throws BackendError if
  /// the library is older than 2.27.
  virtual std::unique_ptr<NcclGroup> shrink(std::vector<int> excluded,
                                            std::shared_ptr<Communicator> remaining) = 0;

 protected:
  using ProcessGroup::ProcessGroup;
};

/// Returns the group of all ranks of a communicator, each with its `device`. Collective; rank 0
/// creates the ncclUniqueId. Throws on all ranks: BackendError if two ranks use the same device,
/// versions of NCCL differ, or NCCL fails; TimeoutError if a rank does not arrive within
/// NcclOptions::start_timeout.
std::unique_ptr<NcclGroup> nccl_group(std::shared_ptr<Communicator> communicator,
                                      std::shared_ptr<const NcclLibrary> library,
                                      std::shared_ptr<const NcclDevice> device,
                                      const NcclOptions& options = {});
/// Variant for ranks that already have a transport group: `base` is that of all ranks over
/// `communicator`.
std::unique_ptr<NcclGroup> nccl_group(std::shared_ptr<Communicator> communicator,
                                      std::unique_ptr<ProcessGroup> base,
                                      std::shared_ptr<const NcclLibrary> library,
                                      std::shared_ptr<const NcclDevice> device,
                                      const NcclOptions& options = {});

}  // namespace lockstep::dist
