#include "nn/kv_cache.h"

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"

namespace lockstep::nn {

KvCache::KvCache(int64_t layers, int64_t capacity)
    : layers_(static_cast<size_t>(layers)), capacity_(capacity) {}

std::pair<Tensor, Tensor> KvCache::append(int64_t layer, const Tensor& key, const Tensor& value) {
  const int64_t end = length_ + key.size(2);
  LS_CHECK(end <= capacity_, ShapeError,
           "[kv_cache] expected at most {} positions, got {}. Clear the cache and feed the last "
           "ones again.",
           capacity_, end);
  Layer& slot = layers_[static_cast<size_t>(layer)];
  if (!slot.keys.defined() || slot.keys.size(0) != key.size(0)) {
    LS_CHECK(
        length_ == 0, ShapeError,
        "[kv_cache] expected a batch of the size of the {} positions before, got {}. Clear the "
        "cache first.",
        length_, key.size(0));
    const Dims sizes = {key.size(0), key.size(1), capacity_, key.size(3)};
    slot.keys = empty(sizes, key.options());
    slot.values = empty(sizes, value.options());
  }
  slot.keys.slice(2, length_, end).copy_(key);
  slot.values.slice(2, length_, end).copy_(value);
  return {slot.keys.slice(2, 0, end), slot.values.slice(2, 0, end)};
}

}  // namespace lockstep::nn
