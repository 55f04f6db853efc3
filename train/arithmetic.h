#pragma once

#include <string>
#include <vector>

#include "core/device/arithmetic_facts.h"
#include "dist/group/process_group.h"

namespace lockstep::train {

/// What `found` has otherwise than `expected`, in words: `kernels: expected "avx512", got "avx2"`,
/// with "; " between several. Facts that one of them lacks are "nothing". Empty where all are
/// equal.
std::string arithmetic_difference(const std::vector<ArithmeticFact>& expected,
                                  const std::vector<ArithmeticFact>& found);

/// For runs that promise bits: throws MismatchError on all ranks where some compute otherwise than
/// rank 0 (processor, libraries, build), naming what differs and on which ranks. All ranks call it,
/// each with its own facts.
void require_same_arithmetic(dist::ProcessGroup& group, const std::vector<ArithmeticFact>& facts);

}  // namespace lockstep::train
