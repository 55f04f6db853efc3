#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Gradients that leave together, as this rank has summed them. Valid while the hook runs.
struct GradientBucket {
  struct Gradient {
    size_t parameter = 0;   ///< its place in the reducer's list, the same in all steps and ranks
    std::string_view name;  ///< the parameter's
    Tensor values;          ///< of the parameter's shape, over the bucket's memory
  };

  size_t index = 0;      ///< from 0 in every step; another step may cut its buckets otherwise
  bool is_last = false;  ///< of the step
  /// All gradients one after another, as a dense vector. Zeros fill the gaps between them, in which
  /// only zeros may be written.
  Tensor values;
  std::vector<Gradient> gradients;
};

/// What becomes of a Reducer's buckets on their way between the ranks, instead of an all_reduce.
struct CommunicationHook {
  /// For errors. Ranks compare it before the first step, so it had better tell of settings, too.
  std::string name;
  /// Returns the sum over all ranks, or what takes its place: the same values on every rank, in
  /// `bucket.values` itself, changed in place, or in a tensor of its size, dtype and device. (An
  /// average is divided afterwards, by the reducer.) It may call any operations of the group, which
  /// is its own, and wait for them; all ranks call it for the same buckets in the same order.
  ///
  /// It is called on a thread of its own, without recording and, on a device with streams, with a
  /// stream of its own as the current one, after the work that the gradients come from. What it
  /// throws ends the job: `Reducer::finish` throws it on this rank, and the other ranks'
  /// PeerLostError has its words.
  std::function<Tensor(ProcessGroup& group, const GradientBucket& bucket)> call;

  explicit operator bool() const { return static_cast<bool>(call); }
};

/// Sends gradients of 32 and 64 bits as bfloat16, so in half (a quarter of) the bytes: each rank's
/// sum is rounded, what they add up to (dist/collectives/reduction.h: in f32, rounded once) is
/// rounded again. 8 bits of precision, the range of f32.
CommunicationHook bf16_compress_hook();

/// The same as float16, with 11 bits of precision. Its range is small, so each gradient is
/// multiplied by a power of two first, the same on all ranks, with which its sum cannot overflow;
/// elements of less than ranks * 2^-28 of the gradient's largest lose bits. Gradients that are not
/// finite stay so. Costs one more operation, of 8 bytes a gradient.
CommunicationHook f16_compress_hook();

}  // namespace lockstep::dist
