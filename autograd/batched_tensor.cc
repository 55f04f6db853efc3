#include "autograd/batched_tensor.h"

#include <atomic>

#include "core/base/check.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

thread_local std::vector<VmapLevel> t_levels;
constinit std::atomic<uint64_t> g_next_id{1};

/// Includes the vmap key in all calls of this thread while a vmap runs, so that the vmap kernel
/// also sees random operators without a batched argument.
void update_key() {
  KeySet& included = detail::thread_keys.included;
  included = t_levels.empty() ? included - Key::kVmap : included | Key::kVmap;
}

/// Returns the tensor batched at every level with a depth below `depths`.
Tensor batched_below(const Tensor& tensor, size_t depths) {
  if (depths == 0) return tensor;
  const size_t depth = depths - 1;
  if (const Batched* batched = find_batched(tensor, depth)) {
    return batched_tensor(batched_below(batched->whole, depth), batched->dim, depth);
  }
  const Tensor whole = batched_below(tensor, depth);
  return batched_tensor(expanded_in_front(whole, depth), 0, depth);
}

}  // namespace

const std::vector<VmapLevel>& vmap_levels() { return t_levels; }

VmapLevelGuard::VmapLevelGuard(int64_t batch, Randomness randomness)
    : level_{g_next_id.fetch_add(1, std::memory_order_relaxed), batch, randomness},
      depth_(t_levels.size()) {
  t_levels.push_back(level_);
  update_key();
}

VmapLevelGuard::~VmapLevelGuard() {
  t_levels.resize(depth_);
  update_key();
}

OuterVmapsGuard::OuterVmapsGuard(size_t depth) {
  hidden_.append(t_levels.begin() + static_cast<std::ptrdiff_t>(depth), t_levels.end());
  t_levels.resize(depth);
  update_key();
}

OuterVmapsGuard::~OuterVmapsGuard() {
  t_levels.insert(t_levels.end(), hidden_.begin(), hidden_.end());
  update_key();
}

const Batched* find_batched(const Tensor& tensor, size_t depth) {
  const Batched* batched = find_batched(tensor);
  return batched != nullptr && batched->depth == depth ? batched : nullptr;
}

Tensor batched_tensor(const Tensor& whole, int64_t dim, size_t depth) {
  const TensorImpl& from = *whole.impl();
  Dims sizes = from.sizes;
  Dims strides = from.strides;
  sizes.erase(static_cast<size_t>(dim));
  strides.erase(static_cast<size_t>(dim));
  Ref<TensorImpl> impl =
      make_ref<TensorImpl>(from.storage, IntList(sizes), IntList(strides), from.offset, from.dtype);
  impl->inference = from.inference;
  impl->keys = (from.keys - Key::kAutograd) | Key::kVmap;
  auto batched = std::make_unique<Batched>();
  batched->level = t_levels.at(depth).id;
  batched->depth = depth;
  batched->dim = dim;
  batched->whole = whole;
  impl->batch = std::move(batched);
  return Tensor(std::move(impl));
}

void set_whole(const Tensor& sample, const Tensor& whole) {
  TensorImpl& impl = *sample.impl();
  const TensorImpl& from = *whole.impl();
  impl.sizes = from.sizes;
  impl.strides = from.strides;
  impl.sizes.erase(0);
  impl.strides.erase(0);
  impl.offset = from.offset;
  impl.refresh();
  Batched& batched = static_cast<Batched&>(*impl.batch);
  batched.dim = 0;
  batched.whole = whole;
}

Tensor whole_in_front(const Batched& batched) {
  if (batched.dim == 0) return batched.whole;
  Dims order{batched.dim};
  for (int64_t i = 0; i < batched.whole.dim(); ++i) {
    if (i != batched.dim) order.push_back(i);
  }
  return batched.whole.permute(order);
}

Tensor expanded_in_front(const Tensor& tensor, size_t depth) {
  Dims sizes{t_levels.at(depth).batch};
  sizes.append(tensor.sizes().begin(), tensor.sizes().end());
  const OuterVmapsGuard outer(depth);
  return tensor.expand(sizes);
}

Tensor innermost_whole(const Tensor& tensor) {
  Tensor whole = tensor;
  while (const Batched* batched = find_batched(whole)) whole = Tensor(batched->whole);
  return whole;
}

Tensor batched_like(const Tensor& like, const Tensor& whole) {
  const Batched* batched = find_batched(like);
  if (batched == nullptr) return whole;
  return batched_tensor(batched_like(batched->whole, whole), batched->dim, batched->depth);
}

Tensor batched_everywhere(const Tensor& tensor) { return batched_below(tensor, t_levels.size()); }

void check_level_runs(std::string_view op, const Batched& batched) {
  const bool runs = batched.depth < t_levels.size() && t_levels[batched.depth].id == batched.level;
  LS_CHECK(
      runs, AutogradError,
      "[{}] an argument is one sample of a batch, and the vmap that made it does not run here: "
      "expected its use inside the function that was given to vmap, on the same thread. "
      "Return it from that function instead of keeping it.",
      op);
}

}  // namespace lockstep
