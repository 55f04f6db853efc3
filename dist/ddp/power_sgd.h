#pragma once

#include <cstdint>

#include "dist/ddp/communication_hook.h"

namespace lockstep::dist {

struct PowerSgdOptions {
  /// Columns of the two factors that are sent for each matrix; at least 1.
  int64_t rank = 4;
  /// Number of steps at the start that sum the gradients uncompressed.
  int64_t start_step = 0;
  /// A gradient is compressed only if that shrinks it by at least this factor.
  double min_compression = 2;
  /// Seed of the initial Q factors.
  uint64_t seed = 0;
};

/// PowerSGD (Vogels, Karimireddy & Jaggi 2019): sends a low-rank approximation of each gradient.
///
/// A gradient of two or more dimensions is a matrix M [n, m] of as many rows as its first
/// dimension. With the factor Q [m, rank] of the step before, the ranks
///
///     M += error                          residual of the step before
///     P  = sum over ranks of M Q          sent: n x rank
///     P  = its columns, orthonormal       by Gram-Schmidt, twice
///     Q  = sum over ranks of M^T P        sent: m x rank
///     M  = P Q^T                          the result, the same on all ranks
///     error = M before - P Q^T / ranks
///
/// so that what one step leaves out is not lost but added in later steps (error feedback), and the
/// sum of the gradients is approximated without a second round. A sum of rank at most `rank` is
/// exact but for rounding. All other gradients (biases, norms, small matrices) are summed
/// uncompressed, those of a bucket in one operation.
///
/// A bucket whose sum is not finite is summed uncompressed and leaves the state unchanged, so that
/// skipping such a step does no harm. Gradients of all steps should have the same scale.
///
/// f32 and f64; DTypeError for compressed gradients of other dtypes. State: the error, as large as
/// the compressed gradients, and Q. It belongs to the hook and its copies, which must serve one
/// Reducer only, and is not part of checkpoints. Throws DistError for options out of range.
CommunicationHook power_sgd_hook(const PowerSgdOptions& options = {});

}  // namespace lockstep::dist
