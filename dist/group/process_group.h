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

/// For one operation.
struct CollectiveOptions {
  /// How long until it fails with TimeoutError, naming the ranks that were waited for; the group's
  /// own (10 minutes) where none is given.
  std::optional<std::chrono::milliseconds> timeout;
};

/// Ranks that communicate. Every rank of a group calls its operations in the same order, with
/// tensors of one dtype and of sizes that fit, dense and row-major, on the cpu or one device with
/// streams; results are written into tensors given.
///
/// An operation starts at once, in the background, and Work tells when it is done; tensors are kept
/// until then and must not be changed, or read where written. On a device with streams it starts
/// when the work queued on the current stream is done, and runs on a stream of the group.
///
/// Operations of one group run in the order called, those of several groups side by side. Throws
/// ShapeError, DTypeError and DeviceError for arguments that cannot be right, before anything is
/// sent. An operation fails, on all its ranks within seconds, with MismatchError when the ranks
/// called it differently, with PeerLostError when a rank of the job failed, and with TimeoutError;
/// after any of these the job's groups are of no more use: every later operation throws the same.
///
/// Thread-safe, though the order of operations is then the caller's affair.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// "world", or what a subgroup was called.
  const std::string& name() const noexcept { return name_; }
  /// "thread", "mpi" or "nccl".
  virtual const char* backend() const noexcept = 0;

  /// Every rank's `tensor` becomes the reduction of all ranks', in rank order
  /// (dist/collectives/reduction.h).
  Work all_reduce(const Tensor& tensor, const Reduction& reduction = {},
                  const CollectiveOptions& options = {});
  /// `output` becomes the sum over a step's leaves in the order of their tree
  /// (dist/collectives/leaf_tree.h), with the same bits on any number of ranks. The rows of `sums`,
  /// each dense and of output's size, are the sums of this rank's subtrees
  /// (`subtrees(leaves_of_rank(leaves, rank(), size()))`); `output` may be one of them. f32, f64
  /// and integers; at least as many leaves as ranks.
  Work tree_all_reduce(const Tensor& output, const Tensor& sums, int64_t leaves,
                       const CollectiveOptions& options = {});
  /// `output` becomes the reduction of all ranks' parts of `input` number `rank()`. `input` holds
  /// size() parts of output's size, one after another.
  Work reduce_scatter(const Tensor& output, const Tensor& input, const Reduction& reduction = {},
                      const CollectiveOptions& options = {});
  /// `output` becomes all ranks' `input`, one after another; `input` may be the own part of it.
  Work all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options = {});
  /// Every rank's `tensor` becomes that of rank `root`.
  Work broadcast(const Tensor& tensor, int root, const CollectiveOptions& options = {});
  /// As all_reduce, for rank `root` alone; what others' tensors hold is as before.
  Work reduce(const Tensor& tensor, int root, const Reduction& reduction = {},
              const CollectiveOptions& options = {});
  /// Part i of `input` goes to rank i; part i of `output` comes from rank i. The parts are along
  /// the first dimension: equal ones without `input_splits` and `output_splits`, else of so many
  /// rows.
  Work all_to_all(const Tensor& output, const Tensor& input, IntList output_splits = {},
                  IntList input_splits = {}, const CollectiveOptions& options = {});
  /// Done when all ranks have called it.
  Work barrier(const CollectiveOptions& options = {});
  /// A message to, and from, another rank of the group. Those with the same tag (less than 2^16)
  /// between two ranks arrive in order. They are not part of the order of the group's operations.
  Work send(const Tensor& tensor, int to, int tag = 0, const CollectiveOptions& options = {});
  Work recv(const Tensor& tensor, int from, int tag = 0, const CollectiveOptions& options = {});

  // Coalesced: as a call for each, in this order, but under way together and with one Work.
  Work all_reduce(std::span<const Tensor> tensors, const Reduction& reduction = {},
                  const CollectiveOptions& options = {});
  Work reduce_scatter(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                      const Reduction& reduction = {}, const CollectiveOptions& options = {});
  Work all_gather(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                  const CollectiveOptions& options = {});
  Work broadcast(std::span<const Tensor> tensors, int root, const CollectiveOptions& options = {});

  /// A group of those ranks of this one, in this order; null on other ranks. All ranks of this
  /// group call it, with the same ranks.
  virtual std::unique_ptr<ProcessGroup> subgroup(std::vector<int> ranks, std::string name) = 0;

  /// For operations called from now on; at least 1 ms.
  void set_timeout(std::chrono::milliseconds timeout);
  std::chrono::milliseconds timeout() const noexcept { return timeout_; }

  /// Bytes of tensors that this rank has sent to others, in operations of all the job's groups that
  /// have ended. Of those through NCCL, which does not tell, none is known.
  virtual std::optional<uint64_t> bytes_sent() const noexcept = 0;

  /// Makes all pending and later operations of the job fail, on all ranks.
  virtual void abort(const std::string& reason) noexcept = 0;

 protected:
  ProcessGroup(int rank, int size, std::string name);

  /// Checked operations that begin together, with the tensors whose memory they use.
  struct Launch {
    std::vector<Operation> operations;
    std::vector<Tensor> tensors;
    Device device;
    std::chrono::milliseconds timeout;
  };
  virtual Work start(Launch launch) = 0;

 private:
  class Call;

  int rank_;
  int size_;
  std::string name_;
  std::chrono::milliseconds timeout_{std::chrono::minutes(10)};
};

/// For ranks that have all found the same thing wrong and are about to throw: waits for the others
/// to have come as far, or for the first of them to have ended, so that each tells what it found
/// and not that another has gone.
void finish_together(ProcessGroup& group) noexcept;

}  // namespace lockstep::dist
