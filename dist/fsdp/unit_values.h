#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/stream.h"
#include "dist/ddp/reducer.h"
#include "dist/fsdp/registered_arenas.h"
#include "dist/fsdp/shard_layout.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Whether a parameter has elements and no memory for them, such as one whose values are to be
/// written once it is sharded.
bool has_no_memory(const Tensor& parameter);

/// Writes the first values of a parameter without memory to `into`, a tensor of its shape.
using FillParameter = std::function<void(const Tensor& parameter, const Tensor& into)>;

/// How a unit keeps and gathers its parameters.
struct UnitValuesOptions {
  TensorOptions tensors = {};  ///< dtype and device of the parameters
  int rank = 0;                ///< of the ranks that keep different parts
  int ranks = 1;
  bool stays_whole = false;  ///< the arena is never freed, and the shard is part of it
  /// Keeps the shard in pinned memory of the host instead, and copies it to the device on this
  /// stream.
  std::optional<Stream> host_copies = {};
  /// The dtype in which matrices are gathered, as the casts that autocast takes
  /// (set_prepared_cast); without it all parameters are gathered as they are.
  std::optional<DType> gather_dtype = {};
  FillParameter fill = {};  ///< for parameters without memory; without it they get zeros
  /// Memory of the group that gathers, for arenas; null: the allocator's.
  RegisteredArenas* arenas = nullptr;
};

/// What to gather of a unit.
struct GatherOptions {
  bool as_they_are = false;  ///< no casts, but the parameters
  /// The values stay for long, with those of all units: the arena is the allocator's.
  bool to_stay = false;
};

/// The values of the parameters of one unit: this rank's shard of their arena at all times, and the
/// whole arena while they are used.
///
/// A parameter keeps its Storage, and so do tensors that were made of it and saved for backward;
/// gathering gives that storage a place in the arena, releasing takes it away, and using it
/// meanwhile throws DeviceError with the parameter's name. Not thread-safe.
class UnitValues {
 public:
  /// Moves the parameters' values into an arena and this rank's part of it into the shard; they are
  /// gathered then, with this rank's values. They must be dense and of `options.tensors` (checked
  /// by the caller). Tensors that share a parameter's memory keep the old memory, without later
  /// changes. With a gather_dtype vectors come before matrices, and the first rank must keep all
  /// vectors: else parameters are gathered as they are.
  UnitValues(std::string name, std::vector<NamedTensor> parameters,
             const UnitValuesOptions& options);

  ~UnitValues();
  UnitValues(const UnitValues&) = delete;
  UnitValues& operator=(const UnitValues&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const ShardLayout& layout() const { return layout_; }
  /// Index of the first parameter that was given no values, or the number of parameters.
  size_t first_without_values() const;
  /// Says that all parameters have values now: they were written to the shards.
  void values_given() { without_values_.clear(); }
  /// This rank's part of the arena, [shard_elements()], which the optimizer changes. One on the
  /// host must not be changed before `host_copies` has come past what `start_gather` queued.
  const Tensor& shard() const { return shard_; }
  /// Bytes of the arena.
  int64_t bytes() const;
  bool stays_whole() const { return options_.stays_whole; }
  /// Whether matrices are gathered as casts.
  bool gathers_casts() const { return gathers_casts_; }

  /// Begins to gather the shards, with memory for the arena if there is none; no effect if the
  /// values are there or on their way, and not out of date. Collective in `group`. Returns whether
  /// it had an effect.
  bool start_gather(ProcessGroup& group, const GatherOptions& options = {});
  /// Waits for the gather, if one is under way, and gives the parameters their values.
  void finish_gather();
  /// Frees the arena and leaves the parameters without memory, unless it stays whole.
  void release();
  /// Does the same after a gather has failed, too.
  void abandon() noexcept;
  bool is_gathered() const { return has_arena() && !gather_under_way_ && !out_of_date_; }

  /// The ranks' shards are about to change, or have changed: the next gather brings other values,
  /// so that graphs recorded before become invalid (version counters).
  void mark_changed();
  /// Makes this rank's shard what its part of the gathered parameters holds, after they were
  /// changed in place.
  void take_from_parameters();

 private:
  Tensor new_arena(DType dtype, bool is_registered) const;
  /// This rank's part of the arena.
  Tensor own_part(const Tensor& arena) const;
  bool has_arena() const { return arena_.defined() || cast_arena_.defined(); }
  /// Whether parameter `index` is gathered as a cast.
  bool is_cast(size_t index) const { return gathers_casts_ && index >= vectors_; }
  /// Whether the shard is a part of the arena.
  bool shares_arena() const { return options_.stays_whole && !options_.host_copies; }
  /// The shard on its way to the device, in the dtype that is gathered.
  const Tensor& cast_shard();

  const std::string name_;
  const std::vector<NamedTensor> parameters_;
  std::vector<size_t> without_values_;  ///< indices of parameters
  std::vector<std::string> why_away_;   ///< by parameter: what its use says while it is released
  const ShardLayout layout_;
  const UnitValuesOptions options_;
  Tensor arena_;  ///< [elements()]; undefined while released
  Tensor shard_;
  Tensor host_cast_;  ///< of a shard on the host; undefined when the shard has changed
  // Where matrices are gathered as casts: the arena in their dtype, and the vectors as they are.
  bool gathers_casts_ = false;
  size_t vectors_ = 0;         ///< number of parameters before the first matrix
  std::vector<Tensor> casts_;  ///< by parameter; undefined for vectors
  Tensor cast_arena_;          ///< [elements()]; undefined while released
  Tensor vector_arena_;        ///< up to the first matrix
  Work vector_gather_;
  Work gather_;
  bool gather_under_way_ = false;
  bool out_of_date_ = false;  ///< what the arena holds of other ranks has changed
  bool new_values_ = false;   ///< not announced by the parameters' versions yet
};

}  // namespace lockstep::dist
