#pragma once

#include <cstdint>

#include "dist/ddp/communication_hook.h"

namespace lockstep::dist {

struct PowerSgdOptions {
  /// Columns of the two factors that are sent for each matrix; at least 1.
  int64_t rank = 4;
  /// So many steps first sum the gradients as they are.
  int64_t start_step = 0;
  /// A gradient is compressed where that makes it smaller by this factor at least.
  double min_compression = 2;
  /// Of the matrices that the search for factors begins with.
  uint64_t seed = 0;
};

/// PowerSGD (Vogels, Karimireddy & Jaggi 2019): sends a low-rank approximation of each gradient.
///
/// A gradient of two or more dimensions is a matrix M [n, m] of as many rows as its first
/// dimension. With the factor Q [m, rank] of the step before, the ranks
///
///     M += error                          what they kept back
///     P  = sum over ranks of M Q          sent: n x rank
///     P  = its columns, orthonormal       by Gram-Schmidt, twice
///     Q  = sum over ranks of M^T P        sent: m x rank
///     M  = P Q^T                          the result, the same on all ranks
///     error = M before - P Q^T / ranks
///
/// so that what one step leaves out is not lost, but comes later, and the sum of the gradients is
/// approximated without a second round. A sum of no higher rank than asked for is exact but for
/// rounding. All other gradients (biases, norms, small matrices) are summed as they are, a bucket's
/// in one piece.
///
/// A bucket whose sum is not finite is summed as it is and leaves the state as it was: a step that
/// is left out for it does no harm. Gradients of all steps should have one scale.
///
/// f32 and f64; DTypeError for compressed gradients of other dtypes. State: the error, as large as
/// the gradients that are compressed, and Q. It belongs to the hook and its copies, which are for
/// one Reducer alone, and is not part of checkpoints. Throws DistError for options out of range.
CommunicationHook power_sgd_hook(const PowerSgdOptions& options = {});

}  // namespace lockstep::dist
