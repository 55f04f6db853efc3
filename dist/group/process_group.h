#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "dist/collectives/operation.h"
#include "dist/collectives/reduction.h"
#include "dist/group/work.h"

namespace lockstep::dist {

/// Options of one operation.
struct CollectiveOptions {
  /// Time after which it fails with a TimeoutError that names the awaited ranks; by default the
  /// group's timeout (10 minutes).
  std::optional<std::chrono::milliseconds> timeout = {};
};

/// A group of ranks that communicate. Every rank calls the group's operations in the same order,
/// with contiguous tensors of one dtype and matching sizes, on the cpu or on one device with
/// streams; results are written into the given tensors.
///
/// An operation starts at once, asynchronously, and returns a Work to wait for. Its tensors are
/// kept alive until it ends; until then inputs must not be changed and outputs neither read nor
/// changed. On a device with streams it starts after the work queued on the current stream, and
/// runs on a stream of the group.
///
/// Operations of one group run in the order called, those of several groups concurrently. Throws
/// ShapeError, DTypeError and DeviceError for invalid arguments, before anything is sent. An
/// operation fails, on all its ranks within seconds, with MismatchError if the ranks called it
/// differently, with PeerLostError if a rank of the job failed, and with TimeoutError; after any of
/// these the job's groups are unusable: every later operation throws the same error.
///
/// Thread-safe, but with several threads the caller must ensure the same order on all ranks.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// "world", or the name given to a subgroup.
  const std::string& name() const noexcept { return name_; }
  /// "thread", "mpi" or "nccl".
  virtual const char* backend() const noexcept = 0;
  /// Whether reductions add every element in one order (dist/collectives/sum_order.h), so that no
  /// bit depends on how tensors are cut into operations. NCCL's do not; tree reductions always do.
  virtual bool adds_in_one_order() const noexcept { return true; }
  /// Whether it communicates nothing and takes tensors on meta (dist/group/planning_group.h).
  virtual bool plans() const noexcept { return false; }

  /// Replaces every rank's `tensor` by the reduction over all ranks (dist/collectives/reduction.h),
  /// in the order of ranks, or of ranks and hosts (dist/collectives/sum_order.h).
  Work all_reduce(const Tensor& tensor, const Reduction& reduction = {},
                  const CollectiveOptions& options = {});
  /// Writes to `output` the sum over a step's leaves in the order of their tree
  /// (dist/collectives/leaf_tree.h), bitwise equal for any number of ranks. The rows of `sums`,
  /// each dense and of output's size, are the sums of this rank's subtrees
  /// (`subtrees(deal.of(rank()))`); `output` may be one of them. f32, f64 and integers. The deal
  /// must be of this group's ranks, and the same on all of them; no bit depends on it.
  Work tree_all_reduce(const Tensor& output, const Tensor& sums, const LeafDeal& deal,
                       const CollectiveOptions& options = {});
  /// With the leaves distributed evenly; at least as many as ranks.
  Work tree_all_reduce(const Tensor& output, const Tensor& sums, int64_t leaves,
                       const CollectiveOptions& options = {});
  /// The part of tree_all_reduce's result that is this rank's: `output` is part number `rank()` of
  /// size() equal parts of it. Rows of `sums` have size() times output's elements; `output` may be
  /// this rank's part of one of them.
  Work tree_reduce_scatter(const Tensor& output, const Tensor& sums, const LeafDeal& deal,
                           const CollectiveOptions& options = {});
  Work tree_reduce_scatter(const Tensor& output, const Tensor& sums, int64_t leaves,
                           const CollectiveOptions& options = {});
  /// Writes to `output` the reduction over all ranks of part number `rank()` of `input`. `input`
  /// holds size() parts of output's size, one after another.
  Work reduce_scatter(const Tensor& output, const Tensor& input, const Reduction& reduction = {},
                      const CollectiveOptions& options = {});
  /// Writes all ranks' `input` to `output`, one after another; `input` may be this rank's part of
  /// it.
  Work all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options = {});
  /// Copies `tensor` of rank `root` to all ranks.
  Work broadcast(const Tensor& tensor, int root, const CollectiveOptions& options = {});
  /// Like all_reduce, with the result on rank `root` only; other ranks' tensors are unchanged.
  Work reduce(const Tensor& tensor, int root, const Reduction& reduction = {},
              const CollectiveOptions& options = {});
  /// Sends part i of `input` to rank i and receives part i of `output` from rank i. Parts are along
  /// the first dimension: equal by default, else with the numbers of rows in `input_splits` and
  /// `output_splits`.
  Work all_to_all(const Tensor& output, const Tensor& input, IntList output_splits = {},
                  IntList input_splits = {}, const CollectiveOptions& options = {});
  /// Done when all ranks have called it.
  Work barrier(const CollectiveOptions& options = {});
  /// Send a message to another rank, or receive one. Those with the same tag (less than 2^16)
  /// arrive in order; they have no order with the group's collectives. On a device with streams a
  /// message is sent or received when the one that this rank called before it is done.
  Work send(const Tensor& tensor, int to, int tag = 0, const CollectiveOptions& options = {});
  Work recv(const Tensor& tensor, int from, int tag = 0, const CollectiveOptions& options = {});

  // Coalesced: like one call for each tensor, in this order, but concurrent and with one Work.
  Work all_reduce(std::span<const Tensor> tensors, const Reduction& reduction = {},
                  const CollectiveOptions& options = {});
  Work reduce_scatter(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                      const Reduction& reduction = {}, const CollectiveOptions& options = {});
  Work all_gather(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                  const CollectiveOptions& options = {});
  Work broadcast(std::span<const Tensor> tensors, int root, const CollectiveOptions& options = {});

  /// Returns a group of the given ranks of this group, in this order; null on other ranks.
  /// Collective over this group, with the same arguments on all ranks.
  virtual std::unique_ptr<ProcessGroup> subgroup(std::vector<int> ranks, std::string name) = 0;

  /// Memory on the group's device, registered with the library that communicates, whose operations
  /// on it need no copies to memory of their own. Null where there is none to have. Not of the
  /// caching allocator: for memory that stays. Collective, with the same number of bytes, above 0,
  /// on all ranks. Frees nothing before the work on it is done; free it before the group.
  virtual Ref<Storage> registered_memory(size_t bytes, Device device) {
    (void)bytes;
    (void)device;
    return {};
  }

  /// Sets the timeout of operations called from now on; at least 1 ms.
  void set_timeout(std::chrono::milliseconds timeout);
  std::chrono::milliseconds timeout() const noexcept { return timeout_; }

  /// Bytes of tensors that this rank has sent to others in finished operations of all the job's
  /// groups; nullopt for NCCL, which does not report them.
  virtual std::optional<uint64_t> bytes_sent() const noexcept = 0;

  /// Makes all pending and later operations of the job fail, on all ranks.
  virtual void abort(const std::string& reason) noexcept = 0;

  /// Identifies this start of the job; equal on all its ranks. Empty if the backend has no flight
  /// recorder, as has the next function no effect then.
  virtual std::string start_id() const { return {}; }
  /// From now on this rank's flight record (dist/flight) is written to `folder` after a failure.
  virtual void set_flight_folder(const std::string& folder) { (void)folder; }

 protected:
  ProcessGroup(int rank, int size, std::string name);

  /// Validated operations that begin together, with the tensors whose memory they use.
  struct Launch {
    std::vector<Operation> operations;
    std::vector<Tensor> tensors;
    Device device;
    std::chrono::milliseconds timeout;
  };
  virtual Work start(Launch launch) = 0;

 private:
  class Call;
  Work tree_reduction(OpKind kind, const Tensor& output, const Tensor& sums, const LeafDeal& deal,
                      const CollectiveOptions& options);
  LeafDeal even_deal(const char* op, int64_t leaves) const;

  int rank_;
  int size_;
  std::string name_;
  std::chrono::milliseconds timeout_{std::chrono::minutes(10)};
};

/// Called by all ranks before they throw the same error: waits until the others have got here or
/// the first of them has ended, so that each rank reports that error and not the loss of a peer.
void finish_together(ProcessGroup& group) noexcept;

}  // namespace lockstep::dist
