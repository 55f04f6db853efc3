#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Behaviour of random operators inside the function that vmap runs.
enum class Randomness : uint8_t {
  kError,      ///< throw AutogradError
  kSame,       ///< draw the same numbers for every sample
  kDifferent,  ///< draw different numbers for every sample
};

/// One vmap that is running on this thread. Its depth is the number of vmaps around it.
struct VmapLevel {
  uint64_t id = 0;  ///< unique to this run
  int64_t batch = 0;
  Randomness randomness = Randomness::kError;
};

/// The vmaps that are running on this thread, outermost first. While a batching rule or a
/// derivative runs, the vmap at its level and those inside are hidden.
const std::vector<VmapLevel>& vmap_levels();

/// While alive, one more vmap runs on this thread. Guards must be destroyed in reverse order.
class VmapLevelGuard {
 public:
  [[nodiscard]] VmapLevelGuard(int64_t batch, Randomness randomness);
  ~VmapLevelGuard();
  VmapLevelGuard(const VmapLevelGuard&) = delete;
  VmapLevelGuard& operator=(const VmapLevelGuard&) = delete;

  const VmapLevel& level() const { return level_; }
  size_t depth() const { return depth_; }

 private:
  VmapLevel level_;
  size_t depth_;
};

/// While alive, all but the outermost `depth` vmaps of this thread are hidden.
class OuterVmapsGuard {
 public:
  [[nodiscard]] explicit OuterVmapsGuard(size_t depth);
  ~OuterVmapsGuard();
  OuterVmapsGuard(const OuterVmapsGuard&) = delete;
  OuterVmapsGuard& operator=(const OuterVmapsGuard&) = delete;

 private:
  SmallVector<VmapLevel, 4> hidden_;
};

/// The batch behind a tensor that represents one sample. Autograd records operators on the whole
/// batch, so `whole` requires grad and the sample does not.
struct Batched final : BatchMeta {
  uint64_t level = 0;  ///< VmapLevel::id
  size_t depth = 0;    ///< depth of the level, 0 for the outermost vmap
  int64_t dim = 0;     ///< batch dimension of `whole`
  Tensor whole;        ///< may itself be batched by a vmap outside this one
};

/// Returns the batch of a tensor, or null if it is not batched.
inline const Batched* find_batched(const Tensor& tensor) {
  return static_cast<const Batched*>(tensor.impl()->batch.get());
}
/// Returns the batch of a tensor if it is batched at `depth`, else null. A tensor batched at
/// another depth only is a constant at this level.
const Batched* find_batched(const Tensor& tensor, size_t depth);

/// Returns the sample that represents `whole` at `depth`: a tensor without dimension `dim`.
Tensor batched_tensor(const Tensor& whole, int64_t dim, size_t depth);
/// Replaces the batch behind a batched tensor by `whole`, of the same level, with the batch in
/// front.
void set_whole(const Tensor& sample, const Tensor& whole);
/// Returns the whole batch with the batch dimension in front.
Tensor whole_in_front(const Batched& batched);

/// Expands a tensor that is not batched at `depth` over that level's batch, in front.
Tensor expanded_in_front(const Tensor& tensor, size_t depth);

/// Returns the tensor behind all levels, which is not batched itself.
Tensor innermost_whole(const Tensor& tensor);
/// Returns `whole` batched at the same levels and dimensions as `like`.
Tensor batched_like(const Tensor& like, const Tensor& whole);
/// Returns the tensor batched at every running level, expanded at those where it is not batched.
Tensor batched_everywhere(const Tensor& tensor);

/// Throws AutogradError unless the vmap that made the tensor still runs on this thread.
void check_level_runs(std::string_view op, const Batched& batched);

}  // namespace lockstep
