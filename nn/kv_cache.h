#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::nn {

/// Keys and values of the positions that a model has already processed, so that generating a token
/// computes one position instead of all of them. For use under NoGradGuard. Not thread-safe.
class KvCache {
 public:
  /// Creates a cache for `capacity` positions in each of `layers` layers.
  KvCache(int64_t layers, int64_t capacity);

  int64_t length() const { return length_; }
  int64_t capacity() const { return capacity_; }
  void clear() { length_ = 0; }

  /// Appends the new positions of one layer, key and value [batch, heads, new, depth], and returns
  /// all so far, [batch, heads, length + new, depth]. Throws ShapeError when they exceed
  /// capacity(), and for another batch than that of the positions before.
  std::pair<Tensor, Tensor> append(int64_t layer, const Tensor& key, const Tensor& value);
  /// Increases length() by `positions`, after every layer has appended them.
  void advance(int64_t positions) { length_ += positions; }

 private:
  struct Layer {
    Tensor keys;
    Tensor values;
  };
  std::vector<Layer> layers_;
  int64_t capacity_;
  int64_t length_ = 0;
};

}  // namespace lockstep::nn
