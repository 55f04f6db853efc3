#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Gradients that are reduced together, with this rank's sums. Valid while the hook runs.
struct GradientBucket {
  struct Gradient {
    size_t parameter = 0;   ///< index in the reducer's list, the same in all steps and ranks
    std::string_view name;  ///< name of the parameter
    Tensor values;          ///< view of the bucket in the parameter's shape
  };

  size_t index = 0;      ///< from 0 in every step; buckets may differ from step to step
  bool is_last = false;  ///< whether it is the last bucket of the step
  /// All gradients one after another, as a dense vector. The gaps between them are zero and must
  /// stay zero.
  Tensor values;
  std::vector<Gradient> gradients;
};

/// Reduces a Reducer's buckets over the ranks in place of the built-in all_reduce.
struct CommunicationHook {
  /// Appears in errors. Ranks compare it before the first step, so it should include the settings.
  std::string name;
  /// Returns the sum over all ranks or a substitute for it: the same values on every rank, either
  /// `bucket.values` changed in place or a tensor of its size, dtype and device. (For an average
  /// the reducer divides afterwards.) It may call any operation of `group`, which serves only the
  /// hook, and wait for it; all ranks call it for the same buckets in the same order.
  ///
  /// It runs on its own thread, without recording for autograd. On a device with streams its own
  /// stream is current and is ordered after the work that computes the gradients. An exception ends
  /// the job: `Reducer::finish` throws it on this rank, and the other ranks get a PeerLostError
  /// with its message.
  std::function<Tensor(ProcessGroup& group, const GradientBucket& bucket)> call;

  explicit operator bool() const { return static_cast<bool>(call); }
};

/// Returns a hook that sends f32 and f64 gradients as bfloat16, in a half or a quarter of the
/// bytes: each rank's sum is rounded, and their total (summed in f32, dist/collectives/reduction.h)
/// is rounded again. 8 bits of precision, the range of f32.
CommunicationHook bf16_compress_hook();

/// Returns a hook like bf16_compress_hook that sends float16, with 11 bits of precision. The range
/// of f16 is small, so each gradient is first multiplied by a power of two, the same on all ranks,
/// that keeps its sum from overflowing; elements smaller than ranks * 2^-28 of the gradient's
/// largest lose bits. Gradients that are not finite stay so. Costs one more all_reduce, of 8 bytes
/// a gradient.
CommunicationHook f16_compress_hook();

}  // namespace lockstep::dist
