#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/stream.h"
#include "dist/ddp/reducer.h"
#include "dist/fsdp/registered_arenas.h"
#include "dist/fsdp/shard_layout.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// How the gradients of a unit are added.
struct GradientSumOptions {
  /// Rows of the arena: partial sums of leaves that wait for others (dist/collectives/leaf_tree.h).
  int64_t rows = 1;
  /// With a tree of leaves: which of them each rank of SumGroups::all has; empty without.
  LeafDeal deal = {};
  /// As in ReducerOptions.
  bool average = false;
  /// The dtype in which gradients are sent, if another than the parameters'. Not with tree_leaves.
  std::optional<DType> send_dtype = {};
  /// Keeps the sums in pinned memory of the host, and copies them there on this stream.
  std::optional<Stream> host_copies = {};
  /// Memory of SumGroups::shards, for what is sent and received; null: the allocator's. Not with a
  /// tree of leaves.
  RegisteredArenas* arenas = nullptr;
};

/// The ranks that gradients are summed over. With replicas the ranks come in groups of equal size,
/// one after another: those of a group keep different parts, and rank i of every group the same.
struct SumGroups {
  ProcessGroup* all = nullptr;
  ProcessGroup* shards = nullptr;    ///< ranks that keep different parts: this rank's group
  ProcessGroup* replicas = nullptr;  ///< ranks that keep the same part; null: this one alone
};

/// The gradients of the parameters of one unit: an arena of all of them while a backward computes
/// them, and this rank's shard of their sums. Not thread-safe.
class UnitGradients {
 public:
  /// `unit` is the unit's path. `parameters` are those of the unit that `layout` is of; those that
  /// require grad at this time have gradients.
  UnitGradients(std::string unit, std::vector<NamedTensor> parameters, const ShardLayout& layout,
                const GradientSumOptions& options);
  ~UnitGradients();
  UnitGradients(const UnitGradients&) = delete;
  UnitGradients& operator=(const UnitGradients&) = delete;

  /// Whether parameter `index` has a gradient.
  bool is_trained(uint32_t index) const { return trained_[index]; }
  /// Number of parameters with a gradient.
  size_t trained() const { return trained_count_; }
  /// This rank's part of the sums, [shard_elements()], zeros before the first; undefined for a unit
  /// of frozen parameters.
  const Tensor& sums() const { return host_sums_.defined() ? host_sums_ : sums_; }

  /// From the next step on sums are over this deal's tree, in an arena of `rows`. Between steps;
  /// the deal must have as many leaves and ranks as the one before.
  void deal_out(const LeafDeal& deal, int64_t rows);
  /// Forgets sums and gradients: a new step.
  void begin_step();
  /// Does that without waiting for sums that have begun, which will never end.
  void forget();
  /// The next backwards write into row `row`.
  void begin_leaf(int64_t row);
  /// Gives the gradients places in the arena, unless they have them.
  void prepare();
  /// Does that, and makes all gradients zero.
  void prepare_zeros();
  /// A backward is about to compute gradients, each once.
  void begin_backward();
  /// Counts a gradient; true for the last of this backward. Throws AutogradError for one that comes
  /// after that.
  bool arrived(uint32_t index);
  /// Whether gradients are there that have not been reduced.
  bool has_gradients() const { return arena_.defined(); }
  /// Whether a reduction of this step's gradients has begun.
  bool has_sums() const { return has_sums_; }
  /// Index of the first parameter without a gradient, or the number of parameters.
  uint32_t first_missing() const;

  /// Adds row `row` to the row before it, that to the one before it, and so on, `joins` times.
  void join(int64_t row, int64_t joins);
  /// Does that, sends what is left to the ranks' shards and returns the operation, which is also
  /// waited for in `finish`. The arena is freed when it ends. Collective in `groups.shards`.
  Work reduce(const SumGroups& groups, int64_t row, int64_t joins);
  /// Waits for the sums over `shards`, and begins to sum them over `replicas`, if there are any and
  /// this has not been done in this step. Collective in `groups.replicas`; the step's last
  /// reduction must have begun.
  void begin_replica_sums(const SumGroups& groups);
  /// Waits for the sums over `shards` of the reductions that have begun.
  void finish_shard_sums();
  /// Waits for the sums. Those on the host are there when `host_copies` has come past this call.
  void finish();
  /// Bytes that a reduction sends and receives.
  int64_t bytes() const;

 private:
  void place();
  void drop_places();

  struct Pending {
    Work work;
    Tensor sent;           ///< where registered; else undefined
    Tensor more;           ///< to be added to the sums; undefined where it was written to them
    bool is_first = true;  ///< of a step
  };
  Work exchange_subtrees(const SumGroups& groups, const Tensor& sums);
  Work reduce_scatter(const SumGroups& groups, const Tensor& arena, Pending& next);
  Tensor take_registered(int64_t elements, DType dtype);
  void give_back(const Tensor& memory);

  const std::string unit_;
  const std::vector<NamedTensor> parameters_;
  const ShardLayout layout_;
  GradientSumOptions options_;
  std::vector<bool> trained_;
  size_t trained_count_ = 0;
  DType dtype_ = DType::kF32;  ///< of the parameters
  Device device_;
  Tensor sums_;  ///< undefined between steps where they are kept on the host
  Tensor host_sums_;
  bool has_sums_ = false;  ///< of this step
  Tensor arena_;           ///< [rows, elements()]; undefined between a reduction and a backward
  int64_t row_ = 0;
  bool needs_places_ = true;
  size_t missing_ = 0;
  std::vector<Pending> pending_;
  /// With replicas and a tree: this rank's part of the sums of the subtrees of each rank of
  /// `shards`, in the order of leaves, [subtrees, shard_elements()].
  Tensor subtrees_;
  std::optional<Work> replica_sums_;  ///< begun in this step
  Tensor sent_sums_;                  ///< with a send_dtype: what the replicas add
};

}  // namespace lockstep::dist
