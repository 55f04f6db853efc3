#pragma once

#include <string>
#include <vector>

#include "core/device/arithmetic_facts.h"
#include "dist/group/process_group.h"

namespace lockstep::train {

/// Describes how `found` differs from `expected`: `kernels: expected "avx512", got "avx2"`, several
/// differences joined by "; ". A fact missing on one side reads "nothing". Empty if all are equal.
std::string arithmetic_difference(const std::vector<ArithmeticFact>& expected,
                                  const std::vector<ArithmeticFact>& found);

/// For runs with reproducibility BITWISE: throws MismatchError on all ranks if the arithmetic facts
/// (processor, libraries, build) of any rank differ from rank 0's, naming the differences and the
/// ranks. Collective: each rank passes its own facts.
void require_same_arithmetic(dist::ProcessGroup& group, const std::vector<ArithmeticFact>& facts);

}  // namespace lockstep::train
