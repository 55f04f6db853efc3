#include "kernels/cuda/attention/rotary.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

/// A thread for each pair. Neighbouring threads read neighbouring elements of both halves.
template <class T>
__device__ void rotary(const Rotary& p) {
  using C = ComputeType<T>;
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    int64_t pair, position, head;
    const int64_t batch = p.heads.split(p.positions.split(p.pairs.split(i, pair), position), head);
    const auto offset = [&](const Rotary::Strides& s) {
      return batch * s.batch + head * s.head + position * s.position;
    };
    const T* from = static_cast<const T*>(p.from) + offset(p.from_strides);
    T* to = static_cast<T*>(p.to) + offset(p.to_strides);
    const C c = static_cast<const C*>(p.cosine)[position * p.cosine_row + pair * p.cosine_column];
    const C table = static_cast<const C*>(p.sine)[position * p.sine_row + pair * p.sine_column];
    const C s = p.inverse ? -table : table;
    const C first = convert<C>(from[pair * p.from_strides.column]);
    const C second = convert<C>(from[(pair + p.pairs.size) * p.from_strides.column]);
    to[pair * p.to_strides.column] = convert<T>(first * c - second * s);
    to[(pair + p.pairs.size) * p.to_strides.column] = convert<T>(second * c + first * s);
  }
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;

#define LS_ROTARY(T, suffix) \
  LS_CUDA_KERNEL(rotary_##suffix, lockstep::cuda::Rotary, 256) { lockstep::cuda::rotary<T>(p); }
LS_ROTARY(float, f32)
LS_ROTARY(double, f64)
LS_ROTARY(Half, f16)
LS_ROTARY(BFloat16, bf16)
