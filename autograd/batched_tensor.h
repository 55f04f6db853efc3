#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

/// What random operators do inside the function that vmap runs.
enum class Randomness : uint8_t {
  kError,      ///< throw
  kSame,       ///< draw the same numbers for every sample
  kDifferent,  ///< draw other numbers for every sample
};

/// One vmap that is running on this thread. Their depths count from the outermost, 0.
struct VmapLevel {
  uint64_t id = 0;  ///< of this run; never used again
  int64_t batch = 0;
  Randomness randomness = Randomness::kError;
};

/// The vmaps that are running on this thread, outermost first. While a rule or a derivative runs,
/// those at and inside its level are hidden.
const std::vector<VmapLevel>& vmap_levels();

/// While alive, one more vmap runs on this thread. Must be destroyed in the reverse order.
class VmapLevelGuard {
 public:
  VmapLevelGuard(int64_t batch, Randomness randomness);
  ~VmapLevelGuard();
  VmapLevelGuard(const VmapLevelGuard&) = delete;
  VmapLevelGuard& operator=(const VmapLevelGuard&) = delete;

  const VmapLevel& level() const { return level_; }
  size_t depth() const { return depth_; }

 private:
  VmapLevel level_;
  size_t depth_;
};

/// While alive, only the outermost `depth` vmaps of this thread run.
class OuterVmapsGuard {
 public:
  explicit OuterVmapsGuard(size_t depth);
  ~OuterVmapsGuard();
  OuterVmapsGuard(const OuterVmapsGuard&) = delete;
  OuterVmapsGuard& operator=(const OuterVmapsGuard&) = delete;

 private:
  SmallVector<VmapLevel, 4> hidden_;
};

/// What stands behind a tensor that is one sample of many: the whole batch. Autograd runs on the
/// whole, so that is what requires grad.
struct Batched final : BatchMeta {
  uint64_t level = 0;  ///< VmapLevel::id
  size_t depth = 0;    ///< of the level, 0 for the outermost vmap
  int64_t dim = 0;     ///< the batch's, of `whole`
  Tensor whole;        ///< may itself be batched by a vmap outside this one
};

/// Null for a tensor that is not batched.
inline const Batched* find_batched(const Tensor& tensor) {
  return static_cast<const Batched*>(tensor.impl()->batch.get());
}
/// The same at `depth` only; at another depth a tensor is a constant to that level.
const Batched* find_batched(const Tensor& tensor, size_t depth);

/// `whole` as the function of the vmap at `depth` sees it: without dimension `dim`.
Tensor batched_tensor(const Tensor& whole, int64_t dim, size_t depth);
/// Makes a batched tensor see another whole of the same level, with the batch in front.
void set_whole(const Tensor& sample, const Tensor& whole);
/// The whole batch with its dimension in front.
Tensor whole_in_front(const Batched& batched);

/// A tensor that is not batched at `depth`, expanded over that level's batch, in front.
Tensor expanded_in_front(const Tensor& tensor, size_t depth);

/// The tensor behind every level.
Tensor innermost_whole(const Tensor& tensor);
/// `whole` in place of the innermost whole of `like`, batched as that is.
Tensor batched_like(const Tensor& like, const Tensor& whole);
/// The tensor, batched at every running level: one that is not is expanded.
Tensor batched_everywhere(const Tensor& tensor);

/// Throws AutogradError unless the vmap that made the tensor still runs on this thread.
void check_level_runs(std::string_view op, const Batched& batched);

}  // namespace lockstep
