#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "autograd/hooks.h"
#include "core/tensor/event.h"
#include "core/tensor/stream.h"
#include "dist/collectives/leaf_tree.h"
#include "dist/ddp/gradient_sync.h"
#include "dist/fsdp/registered_arenas.h"
#include "dist/fsdp/unit_values.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

struct SumGroups;

/// What of a model is spread over the ranks. The results of a step do not depend on it.
enum class ShardStrategy : uint8_t {
  /// Parameters, gradients and optimizer state; a unit's parameters are gathered for its forward
  /// and again for its backward (ZeRO-3).
  kFullShard,
  /// Gradients and optimizer state; parameters are gathered for forward and stay until their
  /// backward has ended (ZeRO-2).
  kShardGradOp,
  /// Optimizer state; parameters stay on every rank, gradients until the step's last backward. The
  /// updated parameters are gathered while the next forward runs (ZeRO-1).
  kShardOptimizer,
  /// As kFullShard within groups of ShardOptions::shard_size ranks; the groups are replicas of each
  /// other. Parameters are gathered within a group alone, and the sums of each part go between the
  /// groups.
  kHybridShard,
};

struct ShardOptions {
  ShardStrategy strategy = ShardStrategy::kFullShard;
  /// With kHybridShard: ranks of a group, which keep a whole model together. Groups are consecutive
  /// ranks; the number of ranks must be a multiple.
  int shard_size = 0;
  /// Bytes of parameters that may be gathered before they are needed. The next unit is gathered
  /// ahead whatever its size.
  int64_t prefetch_bytes = 0;
  /// The leaves of a step that this rank adds up, as in ReducerOptions. Only with tree_leaves.
  LeafRange leaves{0, 1};
  /// As in ReducerOptions: above 0, sums are those of one rank, bit for bit. The gradients of all
  /// units stay on every rank until the step's last backward then.
  int64_t tree_leaves = 0;
  /// With autocast to this dtype around all forwards: the matrices of units other than the root are
  /// cast once, gathered in it, and taken by autocast as its casts, the same bits as its own. Half
  /// the bytes on the way and while gathered; gathered matrices cannot be read otherwise. No effect
  /// with kShardOptimizer. Units whose vectors do not fit in one rank's part are gathered as they
  /// are.
  std::optional<DType> gather_dtype = {};
  /// The dtype in which gradients are sent to the ranks that keep their sums; sums are added up in
  /// the parameters'. Not with tree_leaves.
  std::optional<DType> reduce_dtype = {};
  /// Keeps this rank's parts of parameters and of gradients in pinned memory of the host, so that
  /// the optimizer's state is there too and the optimizer runs there. Parts are copied to the
  /// device as units are gathered, and sums to the host as they are complete, beside computing. For
  /// parameters on a device with streams.
  bool cpu_offload = false;
  /// Divides the sums by the number of ranks. Not with tree_leaves.
  bool average = false;
  /// Gradients are added up on each rank, at the price of memory for all of them, until the
  /// backward that `expect_last_backward` announces; else each backward sends its own. Implied by
  /// tree_leaves.
  bool accumulates = false;
  /// Ranks may have different numbers of forwards and backwards in a step (pass_without_samples).
  /// Only where gradients accumulate. Costs memory: reductions of any number of units may be under
  /// way at once.
  bool uneven_passes = false;
  /// Parameters that are left as they are, without gradients of the model's.
  std::vector<Tensor> ignored = {};
  /// Gives parameters without memory their first values, the same on all ranks: one unit after the
  /// other, each whole for a moment, so that no rank ever holds the whole model. Where it is empty
  /// such parameters have to be filled through `runs` before the first forward.
  FillParameter fill = {};
};

/// Reductions that may be under way when the next begins: their arenas are memory of whole units.
/// Two keep a link busy.
inline constexpr size_t kReductionsUnderWay = 2;

/// A module as ShardedModel sees it. fully_shard makes them of modules.
struct ShardableModule {
  std::string name;                     ///< path from the root, for errors
  std::vector<NamedTensor> parameters;  ///< of the module and all below
  /// Makes `before` be called before each forward pass and `after` after it, with the tensors that
  /// it returns. Returns what undoes that.
  std::function<std::function<void()>(std::function<void()> before,
                                      std::function<void(std::span<const Tensor>)> after)>
      watch;
};

/// A run of elements of one of the model's parameters that one rank keeps.
struct ShardRun {
  NamedTensor parameter;
  int64_t first = 0;  ///< elements `first` to `end` - 1 of the flattened parameter
  int64_t end = 0;
  Tensor values;  ///< [end - first], part of this rank's shard; undefined for another rank's run
};

/// How long a unit's parameters were waited for in a step; in seconds of the thread that computes.
struct GatherWait {
  double seconds = 0;
  double late_seconds = 0;  ///< of them for gathers that were begun when they were needed
};

/// Training of a model whose parameters, gradients and optimizer state are spread over the ranks of
/// a group. `fully_shard` (dist/fsdp/fully_shard.h) makes one of a module; docs/sharding.md shows
/// the life of a unit.
///
/// The model is divided into units: modules of its own, and what they leave over, the root's. Each
/// parameter is in one unit; one that several units use is the root's. The root's parameters stay
/// gathered from the beginning of a forward to the end of its backward.
///
///     dist::ShardedModel& sharded = ...;
///     Optimizer optimizer(sharded.parameters());     // this rank's parts
///     for (...) {
///       sharded.begin_step(), sharded.begin_leaf();
///       loss(model, my_samples()).backward();
///       sharded.finish();
///       optimizer.step(sharded.gradients());
///     }
///
/// All ranks run the same forwards and backwards in the same order, the ones without gradients
/// included: a forward is a collective. An exception on one rank within a step ends the group. The
/// module and the group must outlive this object; afterwards the parameters have no values, unless
/// `summon_full_parameters` is in force. Not thread-safe; parameters are on one device.
class ShardedModel final : public GradientSync {
 public:
  /// `units` in the order of forward, `root` with the parameters of all. Collective. Leaves the
  /// parameters summoned, each rank with the values that it had: `release_full_parameters(true)`
  /// makes of each rank's part of them its shard. If any has no memory on some rank, all are
  /// sharded at once instead (ShardOptions::fill). Throws MismatchError on all ranks if names,
  /// shapes, units or options differ, ShapeError, DTypeError and DeviceError for parameters that
  /// cannot be sharded.
  ShardedModel(ShardableModule root, std::vector<ShardableModule> units, ProcessGroup& group,
               const ShardOptions& options);
  ~ShardedModel() override;
  ShardedModel(const ShardedModel&) = delete;
  ShardedModel& operator=(const ShardedModel&) = delete;

  /// This rank's parts of the trained parameters, in the order of the model's: views of its shards,
  /// for an optimizer that works element by element. Parts of a vector have one dimension, those of
  /// a tensor of more dimensions two, [1, n], as weight decay tells them apart by that.
  const std::vector<NamedTensor>& parameters() const { return parts_; }
  /// The sums of their gradients, in the same order.
  const std::vector<Tensor>& gradients() const override { return gradients_; }
  Tensor blocks_of_all(const Tensor& own) const override;

  void begin_step() override;
  void forget_step() override;
  /// Requires ShardOptions::uneven_passes.
  void deal_out(const LeafDeal& deal) override;
  void begin_leaf() override;
  void expect_last_backward(bool expected = true) override { last_backward_ = expected; }
  /// Takes part in a forward and backward of the other ranks after this rank's last one of a step.
  /// Requires ShardOptions::uneven_passes.
  void pass_without_samples();
  /// Throws AutogradError naming the first parameter without a gradient. The optimizer may change
  /// the parts afterwards.
  void finish() override;

  /// While a guard is alive, backward adds to the gradients of this rank and sends nothing, at the
  /// price of memory for all gradients. Guards nest.
  class NoSync {
   public:
    explicit NoSync(ShardedModel& model) : model_(model) { ++model_.no_sync_; }
    ~NoSync() { --model_.no_sync_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    ShardedModel& model_;
  };
  [[nodiscard]] NoSync no_sync() { return NoSync(*this); }

  /// Frees what forwards without a backward have left gathered, after an evaluation.
  void end_forwards();

  /// Calls `then` in each step, as soon as a unit's sums are complete, with the indices of this
  /// rank's parts of it in `parameters()` and with `gradients()`: in the backward that was
  /// announced as the last, or in `finish`. It may change these parts. Not with tree_leaves.
  void on_reduced(
      std::function<void(std::span<const uint32_t> parts, const std::vector<Tensor>& gradients)>
          then);

  /// Whether units are gathered as casts (ShardOptions::gather_dtype), as at first. Turned off
  /// around forwards without autocast. Not during a step; the same on all ranks.
  void gather_casts(bool on);

  /// Gathers all parameters and keeps them until `release_full_parameters`, to be read, saved, or
  /// changed in place (alike on all ranks). Collective; not during a step.
  void summon_full_parameters();
  /// Ends that; with `changed` the shards become what the parameters hold now.
  void release_full_parameters(bool changed = false);
  bool is_summoned() const { return summoned_; }
  /// The whole of `parameter`, one of the model's, on rank `root`; undefined on the others.
  /// Collective where it is sharded and not summoned; else the parameter itself, on all ranks.
  Tensor collect(const Tensor& parameter, int root = 0) const;
  /// Number of trained parameters of the model.
  size_t trained_count() const { return trained_.size(); }
  /// Trained parameter `number`, in the order of the model. It has its shape also while it is not
  /// gathered.
  const NamedTensor& trained(size_t number) const { return trained_[number].parameter; }
  /// Index in `parameters()` of this rank's part of trained parameter `number`; -1: it has none.
  int64_t part_of(size_t number) const { return part_of_[number]; }
  /// What rank `shard` of `shards()` keeps of it, if anything.
  std::optional<ShardSlice> slice_of(size_t number, int shard) const;
  /// The ranks that keep a whole model together, this one among them: all, or those of its replica.
  ProcessGroup& shards() const { return *shards_; }
  /// Puts together tensors like `parameters()`, one for each part, such as an optimizer's state:
  /// returns the whole one of trained parameter `number` (in the order of the model), with its
  /// shape and dtype, on rank `root`; undefined on the others. Collective.
  Tensor collect_parts(size_t number, const std::vector<Tensor>& parts, int root = 0) const;
  /// Copies the parts of `whole`, which rank `root` gives, to the ranks' `parts`. Collective.
  void distribute_parts(size_t number, const Tensor& whole, const std::vector<Tensor>& parts,
                        int root = 0) const;
  /// What rank `rank` keeps of all parameters, frozen ones included. Values may be written to this
  /// rank's while parameters are not summoned; call `mark_changed` on all ranks afterwards.
  std::vector<ShardRun> runs(int rank) const;
  /// Takes all that is gathered away from the parameters, also where gathers have failed: before
  /// another ShardedModel is made of the module, for other ranks. Nothing but the destructor may
  /// follow; parts that `runs` has returned stay.
  void abandon_values() noexcept;
  /// Call it when parts were changed otherwise than by an optimizer between `finish` and the next
  /// forward. Parameters that had no values have them from now on.
  void mark_changed();

  const StepTimes& times() const override { return times_; }
  StepTimes take_times() override { return std::exchange(times_, StepTimes(device_)); }
  /// How long forward and backward have waited for parameters since the step's beginning, by unit.
  const std::vector<GatherWait>& gather_waits() const { return gather_waits_; }
  /// The path of a unit's module, empty for the root, and the bytes of its parameters.
  const std::string& unit_name(size_t unit) const;
  int64_t unit_bytes(size_t unit) const;
  /// The unit of each bucket of `times()`.
  const std::vector<uint32_t>& reduced_units() const { return reduced_units_; }
  /// Gathers parameters and sums gradients, zeros, as in a step of `passes` forwards and backwards,
  /// without computing: to measure what that takes alone. Changes nothing. Collective.
  void communicate(int64_t passes);
  /// Bytes that this rank keeps of parameters, and of gradients, between steps.
  int64_t parameter_bytes() const;
  int64_t gradient_bytes() const;
  /// Whether gradients are summed over the ranks only in a step's last backward.
  bool accumulates() const { return options_.accumulates || options_.tree_leaves > 0; }
  /// Whether each forward and backward gathers parameters, not only the first after an update.
  bool gathers_each_pass() const { return !keeps_whole(); }
  /// Number of units, the root included.
  size_t unit_count() const { return units_.size(); }
  /// Number of ranks that keep a whole model together.
  int shard_size() const { return shards_->size(); }

 private:
  struct Unit;  // dist/fsdp/sharded_unit.h
  static constexpr uint32_t kRoot = 0;
  /// Where a parameter is.
  struct Place {
    uint32_t unit = 0;
    uint32_t index = 0;  ///< within the unit
  };

  void make_groups(int size);
  /// Waits for copies between the host and the device, if shards are kept on the host.
  void wait_for_host_copies() const;
  /// The rank of `shards_` that keeps what `rank` of all ranks keeps.
  int shard_rank(int rank) const { return rank % shards_->size(); }
  SumGroups sum_groups() const;
  void drain();
  void complete(Unit& unit);
  void tell_of_copied();
  void add_units(const ShardableModule& root, const std::vector<ShardableModule>& modules);
  void watch(uint32_t unit, const ShardableModule& module);
  void list_parts(const std::vector<NamedTensor>& parameters);
  void list_blocks();
  std::optional<Place> find(const Tensor& parameter) const;
  template <class Visit>
  void each_run(const Place& place, const Tensor& whole, const Visit& visit) const;
  Tensor collect(const Place& place, const Tensor& own, int root) const;
  void receive(const Tensor& part, int from) const;
  /// This rank's part of trained parameter `number` among `parts`; undefined if it has none.
  Tensor own_part(size_t number, const std::vector<Tensor>& parts) const;
  // What the hooks do.
  void before_forward(uint32_t unit);
  void after_forward(uint32_t unit, std::span<const Tensor> outputs);
  void before_backward(uint32_t unit);
  void gradient_comes(uint32_t unit);
  void gradient_arrived(uint32_t unit, uint32_t index);
  void after_backward();

  void begin_forward();
  void check_have_values() const;
  bool start_gather(uint32_t unit);
  void record(uint32_t unit);
  bool is_last_of_forward(uint32_t unit) const;
  enum class Direction : int8_t { kNone, kForward, kBackward };
  void use(uint32_t unit, Direction ahead);
  void gather_ahead(uint32_t unit, Direction direction);
  void begin_backward();
  void come_to(Unit& unit);
  void reduce(uint32_t unit);
  void reduce_complete(uint32_t unit);
  void check_complete(const Unit& unit) const;
  bool reduces_now() const;
  bool is_in_backward() const { return !running_.expired(); }
  bool keeps_whole() const { return options_.strategy == ShardStrategy::kShardOptimizer; }

  ProcessGroup& group_;
  ProcessGroup* shards_ = nullptr;            ///< ranks with different parts
  std::unique_ptr<ProcessGroup> own_shards_;  ///< shards_ where it is not group_
  std::unique_ptr<ProcessGroup> replicas_;    ///< ranks with the same part, if there are more
  std::unique_ptr<ProcessGroup> gathers_;  ///< apart from sums, so that neither waits for the other
  // Where all ranks take arenas in the same order, without uneven_passes and tree_leaves.
  std::optional<RegisteredArenas> gather_arenas_;  ///< of gathers_
  std::optional<RegisteredArenas> sum_arenas_;     ///< of shards_
  ShardOptions options_;
  Device device_;
  std::optional<OwnedStream> host_copies_;    ///< with cpu_offload
  std::vector<std::unique_ptr<Unit>> units_;  ///< the root first
  std::vector<std::function<void()>> undo_;   ///< the hooks of modules
  std::vector<HookHandle> hooks_;             ///< of parameters

  std::vector<NamedTensor> parts_;
  std::vector<Tensor> gradients_;
  /// For each block of the model, its index in a gather of all ranks' numbers: int64.
  Tensor block_places_;
  int64_t most_blocks_ = 0;  ///< of one rank
  /// A trained parameter.
  struct Trained {
    NamedTensor parameter;
    Place place;
  };
  std::unordered_map<const TensorImpl*, Place> places_;  ///< of the parameters
  std::vector<Trained> trained_;                         ///< in the order of the model
  std::vector<int64_t> part_of_;  ///< by trained parameter: its part of this rank, or -1

  std::vector<uint32_t> order_;     ///< units in the order in which the last forward used them
  size_t position_ = 0;             ///< in order_, of the forward in progress
  bool was_foreseen_ = false;       ///< the unit before position_ was there in the forward before
  std::vector<uint32_t> gathered_;  ///< units in the order of gathers since the last forward began
  std::function<void(std::span<const uint32_t>, const std::vector<Tensor>&)> on_reduced_;
  bool summoned_ = true;
  bool gathers_casts_ = true;
  LeafStack stack_;
  int64_t next_leaf_ = 0;
  bool in_leaf_ = false;
  int64_t last_row_ = 0;
  int64_t last_joins_ = 0;
  bool last_backward_ = false;
  int no_sync_ = 0;
  /// A reduction that may still run.
  struct InFlight {
    uint32_t unit = 0;
    Work work;
    bool is_last = false;  ///< of the unit in this step, as far as was announced
  };
  std::vector<InFlight> in_flight_;  ///< a few, oldest first
  /// Sums that are being copied to the host, of which on_reduced_ will be told.
  struct OnTheWay {
    const Unit* unit = nullptr;
    Event copied;
  };
  std::vector<OnTheWay> on_the_way_;   ///< oldest first
  size_t reductions_ = 0;              ///< in the backward in progress
  bool accumulated_ = false;           ///< a gradient came in the backward in progress
  std::weak_ptr<const bool> running_;  ///< expires with the backward in progress
  std::vector<GatherWait> gather_waits_;
  std::vector<uint32_t> reduced_units_;
  StepTimes times_;
};

}  // namespace lockstep::dist
